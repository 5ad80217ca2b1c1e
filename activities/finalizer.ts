import type { Observation } from '../model/observation.ts';
import { FINALIZER, type ProxyRef } from '../model/proxy.ts';
import type { Kubernetes } from './kubernetes.ts';

/** Both are idempotent, and leave other controllers' finalizers as they are. */
export function createFinalizer(kubernetes: Kubernetes, observe: (ref: ProxyRef) => Promise<Observation>) {
  async function write(
    ref: ProxyRef,
    change: (finalizers: string[]) => string[],
    whileDeleting: boolean,
  ): Promise<void> {
    const proxy = await kubernetes.readProxy(ref);
    if (!proxy) return;
    const before = proxy.metadata.finalizers ?? [];
    const finalizers = change(before);
    if (finalizers.length === before.length) return;
    // The API server refuses new finalizers on an object that is being deleted; the next pass sees that it is.
    if (proxy.metadata.deletionTimestamp && !whileDeleting) return;
    // A list is replaced as a whole by a merge patch: the version makes sure that it is the list that was read.
    await kubernetes.patchProxy(ref, { metadata: { finalizers, resourceVersion: proxy.metadata.resourceVersion } });
  }

  return {
    /** Returns what there is to see then, since a look is always what follows. */
    async addFinalizer(ref: ProxyRef): Promise<Observation> {
      await write(
        ref,
        (finalizers) => (finalizers.includes(FINALIZER) ? finalizers : [...finalizers, FINALIZER]),
        false,
      );
      return observe(ref);
    },
    removeFinalizer: (ref: ProxyRef) =>
      write(ref, (finalizers) => finalizers.filter((name) => name !== FINALIZER), true),
  };
}
