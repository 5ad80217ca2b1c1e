import { ApplicationFailure, activityInfo, cancellationSignal } from '@temporalio/activity';
import { type Instance, type InstanceRef, ProviderError, type ProviderErrorClass } from '../model/instance.ts';
import { FINALIZER, isExternal, type ProxyRef, placedIn, portOf } from '../model/proxy.ts';
import { instanceName, specHash } from '../model/spec-hash.ts';
import { CloudInitError, resolveCloudInit } from './cloud-init.ts';
import { whileAlive } from './heartbeats.ts';
import type { Kubernetes } from './kubernetes.ts';
import type { Provider } from './providers/contract.ts';

export interface InstancesDeps {
  kubernetes: Kubernetes;
  /** A provider that this worker serves. */
  provider(name: string): Provider;
}

/** Which instance, of which configured provider. */
export interface InstanceCall {
  provider: string;
  instance: InstanceRef;
}

/** Crosses the wire as the failure's only detail. */
export interface ProviderFailureDetail {
  retryAfterMillis?: number;
  zoneExhausted?: boolean;
  attempt: number;
}

/** The provider calls. A failed one is an ApplicationFailure whose type is the error's class. */
export function createInstances({ kubernetes, provider }: InstancesDeps) {
  /** The instance, or undefined where it is certain that there is none. */
  async function getInstance({ provider: name, instance }: InstanceCall): Promise<Instance | undefined> {
    try {
      return await classified(() => whileAlive(provider(name).get(instance, cancellationSignal())));
    } catch (error) {
      if (error instanceof ApplicationFailure && error.type === ('NotFound' satisfies ProviderErrorClass))
        return undefined;
      throw error;
    }
  }

  const deleteInstance = ({ provider: name, instance }: InstanceCall): Promise<'gone' | 'deleting'> =>
    classified(() => whileAlive(provider(name).delete(instance, cancellationSignal())));

  /**
   * Makes the instance that was decided on: of this very Proxy, from this very hash, in this very zone. Resolves the
   * cloud-init here, so that its text never crosses the wire. Undefined when the world is no longer the one that was
   * decided on.
   */
  async function createInstance(
    ref: ProxyRef,
    hash: string,
    mayExist = false,
    zone?: string,
  ): Promise<Instance | undefined> {
    const proxy = await kubernetes.readProxy(ref);
    if (!proxy || isExternal(proxy.spec)) return undefined;
    // An attempt that comes late, after its successor or even the whole CR has moved on, must not leave a machine behind.
    const { deletionTimestamp, finalizers } = proxy.metadata;
    if (deletionTimestamp || !finalizers?.includes(FINALIZER)) return undefined;
    const { spec, status = {} } = proxy;
    if (status.zone !== zone) return undefined;
    const cloudInit = await resolveCloudInit(spec, ref.namespace, kubernetes).catch(forgiveCloudInit);
    if (cloudInit === CHANGED || specHash(spec, cloudInit) !== hash) return undefined;
    const request = {
      name: instanceName(ref.uid),
      uid: ref.uid,
      namespace: ref.namespace,
      proxyName: ref.name,
      placement: placedIn(spec.placement ?? {}, status),
      port: portOf(spec),
      specHash: hash,
      mayExist: mayExist || activityInfo().attempt > 1,
      ...(cloudInit !== undefined && { cloudInit }),
    };
    return await classified(() => whileAlive(provider(spec.provider).create(request, cancellationSignal())));
  }

  return { getInstance, createInstance, deleteInstance };
}

const CHANGED = Symbol('the cloud-init is no longer what it was');

function forgiveCloudInit(error: unknown): typeof CHANGED {
  if (error instanceof CloudInitError) return CHANGED;
  throw error;
}

async function classified<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    const { class: type, message, retryAfterMillis, zoneExhausted } = error;
    const { attempt } = activityInfo();
    const detail: ProviderFailureDetail = {
      attempt,
      ...(retryAfterMillis !== undefined && { retryAfterMillis }),
      ...(zoneExhausted && { zoneExhausted }),
    };
    // Only what nobody knows the cause of is worth another quick try; the other classes are answers.
    throw ApplicationFailure.create({ type, message, details: [detail], nonRetryable: type !== 'Transient' });
  }
}
