import type { Kubernetes } from '../../activities/kubernetes.ts';
import type { Provider } from '../../activities/providers/contract.ts';
import { FINALIZER } from '../../model/proxy.ts';
import type { Seams } from '../../worker/worker-service.ts';

/** Every effect that a Proxy's life has on the world, in the order in which it comes. */
export const EFFECTS = [
  'add finalizer',
  'create',
  'write hash annotation',
  'write status',
  'emit event',
  'delete',
  'remove finalizer',
] as const;
export type Effect = (typeof EFFECTS)[number];
export type Side = 'before' | 'after';

export interface CrashPoint {
  effect: Effect;
  side: Side;
  /** The Proxy whose effects count. */
  proxy: { name: string; uid: string };
}

/** Seams at which `crash` is called, once the point is reached. */
export function crashSeams({ effect, side, proxy }: CrashPoint, crash: () => void): Seams {
  async function around<T>(reached: Effect | undefined, mine: boolean, work: () => Promise<T>): Promise<T> {
    const here = mine && reached === effect;
    if (here && side === 'before') crash();
    const result = await work();
    if (here && side === 'after') crash();
    return result;
  }

  return {
    kubernetes: (real: Kubernetes): Kubernetes => ({
      ...real,
      patchProxy: (ref, patch) => around(effectOf(patch), ref.uid === proxy.uid, () => real.patchProxy(ref, patch)),
      patchProxyStatus: (ref, patch) =>
        around('write status', ref.uid === proxy.uid, () => real.patchProxyStatus(ref, patch)),
      createEvent: (ref, event) => around('emit event', ref.uid === proxy.uid, () => real.createEvent(ref, event)),
    }),
    provider: (real: Provider): Provider => ({
      ...real,
      create: (request, signal) => around('create', request.uid === proxy.uid, () => real.create(request, signal)),
      delete: (ref, signal) => around('delete', ref.uid === proxy.uid, () => real.delete(ref, signal)),
    }),
  };
}

function effectOf(patch: object): Effect | undefined {
  const { finalizers, annotations } = (patch as { metadata: { finalizers?: string[]; annotations?: object } }).metadata;
  if (annotations) return 'write hash annotation';
  if (!finalizers) return undefined;
  return finalizers.includes(FINALIZER) ? 'add finalizer' : 'remove finalizer';
}
