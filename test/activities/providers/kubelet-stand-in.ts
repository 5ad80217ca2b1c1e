import { setTimeout as sleep } from 'node:timers/promises';
import type { V1Pod } from '@kubernetes/client-node';
import { onTestFinished } from 'vitest';
import type { Cluster } from './kubernetes-world.ts';

const LOOK_MILLIS = 50;

/**
 * Does for the pods of a namespace what a scheduler and a kubelet do, but for running anything: it puts them on a node,
 * says that they run, and lets them go when they are to be deleted. Ends with the test.
 */
export function standInForKubelet(cluster: Cluster, namespace: string): void {
  const { core } = cluster;
  const ended = new AbortController();
  let addresses = 0;

  const attend = async ({ metadata, spec, status }: V1Pod) => {
    const { name = '', deletionTimestamp } = metadata ?? {};
    if (!spec?.nodeName) await cluster.bind(namespace, name);
    else if (deletionTimestamp) await core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 });
    else if (status?.phase === 'Pending') {
      addresses += 1;
      await cluster.patchStatus(namespace, name, runningStatus(`10.1.0.${addresses}`));
    }
  };
  const work = async () => {
    while (!ended.signal.aborted) {
      const { items } = await core.listNamespacedPod({ namespace });
      // One that was deleted meanwhile is seen again, or not, at the next look.
      await Promise.allSettled(items.map(attend));
      await sleep(LOOK_MILLIS);
    }
  };
  const working = work();
  onTestFinished(async () => {
    ended.abort();
    await working;
  });
}

/** What a kubelet writes of a pod whose Squid accepts connections. */
export function runningStatus(ip: string): object {
  const startedAt = new Date().toISOString();
  return {
    phase: 'Running',
    podIP: ip,
    podIPs: [{ ip }],
    startTime: startedAt,
    conditions: [{ type: 'Ready', status: 'True' }],
    containerStatuses: [squidStatus({ ready: true, started: true, state: { running: { startedAt } } })],
  };
}

/** One container status, with the members that a kubelet always writes. */
export function squidStatus(more: object): object {
  return { name: 'squid', ready: false, restartCount: 0, image: 'squid', imageID: '', ...more };
}
