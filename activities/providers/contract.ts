import type { Instance, InstanceList, InstanceRef, InstanceRequest } from '../../model/instance.ts';

/**
 * What every provider does, and all it does. It knows nothing of CRDs or of Temporal. Every failure is a
 * `ProviderError`; every call gives up when `signal` aborts.
 */
export interface Provider {
  /**
   * Makes the instance, or finds that it is already there and is ours. Does not wait for it to run, but a provider that
   * knows by the time it answers may already say `Running`.
   * An instance of ours made from another hash is returned as it is: the caller compares `specHash`.
   * A stranger's instance under the name is a `Permanent` error.
   */
  create(request: InstanceRequest, signal: AbortSignal): Promise<Instance>;
  /** `NotFound` only when it is certain that there is none. A stranger's instance is a `Permanent` error. */
  get(ref: InstanceRef, signal: AbortSignal): Promise<Instance>;
  /**
   * `gone`: nothing is left of it (or nothing was there); `deleting`: look again later.
   * A stranger's instance is left alone: for us, that is `gone`.
   */
  delete(ref: InstanceRef, signal: AbortSignal): Promise<'gone' | 'deleting'>;
  /** All instances that carry our ownership label, across pages. */
  list(signal: AbortSignal): Promise<InstanceList>;
  /** Ends what the provider itself holds (timers, connections); instances go on. */
  close(): Promise<void>;
}
