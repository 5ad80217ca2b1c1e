import {
  type ConfigurationOptions,
  CoreV1Api,
  type KubeConfig,
  Observable,
  type V1Pod,
  type V1PodList,
} from '@kubernetes/client-node';
import type { PodLocation } from './provider-id.ts';

/** A call that hangs on a half-open connection must end well before whoever waits for it gives up. */
const REQUEST_TIMEOUT_MILLIS = 10_000;

/** The calls that the provider makes. Each ends within its time limit and when `signal` aborts; failures are the client's. */
export interface PodsApi {
  create(pod: V1Pod, signal: AbortSignal): Promise<V1Pod>;
  read(location: PodLocation, signal: AbortSignal): Promise<V1Pod>;
  /** Deletes exactly the pod with this UID: one that was made under its name since is a conflict, 409. */
  delete(location: PodLocation, uid: string, signal: AbortSignal): Promise<void>;
  /** One page; `continueToken` is that of the page before. */
  list(
    query: { namespace: string; labelSelector: string; limit: number; continueToken: string | undefined },
    signal: AbortSignal,
  ): Promise<V1PodList>;
}

export function createPodsApi(kubeConfig: KubeConfig): PodsApi {
  const core = kubeConfig.makeApiClient(CoreV1Api);
  return {
    create: (body, signal) =>
      bounded(signal, (options) =>
        core.createNamespacedPod({ namespace: body.metadata?.namespace ?? 'default', body }, options),
      ),
    read: (location, signal) => bounded(signal, (options) => core.readNamespacedPod(location, options)),
    async delete(location, uid, signal) {
      const body = { preconditions: { uid } };
      await bounded(signal, (options) => core.deleteNamespacedPod({ ...location, body }, options));
    },
    list: ({ continueToken, ...query }, signal) =>
      bounded(signal, (options) =>
        core.listNamespacedPod({ ...query, ...(continueToken && { _continue: continueToken }) }, options),
      ),
  };
}

/**
 * The signal ends the request. Before there is one, the client may be at work on its credentials (a program that gets a
 * token, say), which no signal reaches: so the call itself is not waited for any longer than the signal allows.
 */
async function bounded<T>(signal: AbortSignal, call: (options: ConfigurationOptions) => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const either = AbortSignal.any([signal, AbortSignal.timeout(REQUEST_TIMEOUT_MILLIS)]);
  const { promise: late, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(either.reason);
  either.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([call(withSignal(either)), late]);
  } finally {
    either.removeEventListener('abort', onAbort);
  }
}

const withSignal = (signal: AbortSignal): ConfigurationOptions => ({
  middlewareMergeStrategy: 'append',
  middleware: [
    {
      pre(context) {
        context.setSignal(signal);
        return new Observable(Promise.resolve(context));
      },
      post: (response) => new Observable(Promise.resolve(response)),
    },
  ],
});
