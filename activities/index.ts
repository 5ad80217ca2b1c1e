import { createFinalizer } from './finalizer.ts';
import { createInstances, type InstancesDeps } from './instances.ts';
import { createObserve, type ObserveDeps } from './observe.ts';
import { createProbeShard, type ProbeShardDeps } from './probe-shard.ts';
import { createPublish, type PublishDeps } from './publish.ts';
import { createSweep } from './sweep/index.ts';
import type { SweepDeps } from './sweep/sweep.ts';

/** Activities of the main task queue: what workflows see of Kubernetes and say to it. */
export function createKubernetesActivities(deps: ObserveDeps & PublishDeps) {
  const observe = createObserve(deps);
  return { observe, publish: createPublish(deps), ...createFinalizer(deps.kubernetes, observe) };
}

/** Activities of each queue that serves providers. */
export const createProviderActivities = (deps: InstancesDeps & SweepDeps) => ({
  ...createInstances(deps),
  ...createSweep(deps),
});

/** Activities of the probes' queue. */
export const createProbeActivities = (deps: ProbeShardDeps) => ({ probeShard: createProbeShard(deps) });

/** Activities of the queue of a process that holds a lease store. */
export const createLeaseActivities = (trim: () => Promise<number>) => ({ trimLeaseStore: trim });

/** All of them, as workflows call them. */
export type Activities = ReturnType<typeof createKubernetesActivities> &
  ReturnType<typeof createProviderActivities> &
  ReturnType<typeof createProbeActivities> &
  ReturnType<typeof createLeaseActivities>;
