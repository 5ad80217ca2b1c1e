import { expect, test } from 'vitest';
import { never, requestFor } from './conformance.ts';
import { runningStatus, squidStatus } from './kubelet-stand-in.ts';
import { clusterOfThisFile } from './kubernetes-world.ts';

const cluster = clusterOfThisFile();
const a = requestFor('a');

const IP = { podIP: '10.1.0.7', podIPs: [{ ip: '10.1.0.7' }] };
const SCHEDULED = { conditions: [{ type: 'PodScheduled', status: 'True' }] };
const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();
const ended = (reason: string, exitCode: number, ranSeconds: number, message?: string) => ({
  terminated: { reason, exitCode, startedAt: ago(ranSeconds + 5), finishedAt: ago(5), ...(message && { message }) },
});
const waiting = (reason: string, message?: string) => ({ waiting: { reason, ...(message && { message }) } });
const pending = (status: object) => ({ phase: 'Pending', ...SCHEDULED, containerStatuses: [squidStatus(status)] });
const running = (status: object) => ({ phase: 'Running', ...IP, containerStatuses: [squidStatus(status)] });

/** What a scheduler, a kubelet or a controller writes, and what it means. */
const STATES: [what: string, status: object, state: string, reason: string | undefined][] = [
  ['made, and seen by nobody yet', {}, 'Provisioning', 'it waits for a node'],
  [
    'no node fits',
    { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes fit' }] },
    'Provisioning',
    'Unschedulable: 0/3 nodes fit',
  ],
  ['scheduled', SCHEDULED, 'Provisioning', 'its node has not taken it up yet'],
  ['its container is made', pending({ state: waiting('ContainerCreating') }), 'Provisioning', 'ContainerCreating'],
  [
    'its image can not be had',
    pending({ state: waiting('ImagePullBackOff', 'Back-off pulling image "nope"') }),
    'Provisioning',
    'ImagePullBackOff: Back-off pulling image "nope"',
  ],
  [
    'its container can not be made',
    pending({ state: waiting('CreateContainerConfigError', 'secret "x" not found') }),
    'Provisioning',
    'CreateContainerConfigError: secret "x" not found',
  ],
  ['without an address', { phase: 'Running' }, 'Provisioning', 'it has no address yet'],
  [
    'Squid does not listen yet',
    running({ state: { running: { startedAt: ago(1) } }, started: false }),
    'Provisioning',
    'Squid does not accept connections yet',
  ],
  ['Squid accepts connections', runningStatus('10.1.0.7'), 'Running', undefined],
  [
    'Squid has started, and is too busy to accept just now',
    running({ state: { running: { startedAt: ago(900) } }, started: true, ready: false }),
    'Running',
    undefined,
  ],
  [
    'Squid was killed for its memory after a while, and comes back',
    running({ state: ended('OOMKilled', 137, 3600) }),
    'Running',
    'Squid ended with OOMKilled (exit code 137), and is being started again',
  ],
  [
    'Squid comes back after a while',
    running({
      state: { running: { startedAt: ago(1) } },
      started: false,
      lastState: ended('Error', 1, 3600),
      restartCount: 1,
    }),
    'Running',
    'Squid ended with Error (exit code 1), and is being started again',
  ],
  [
    'Squid crashes in a loop',
    running({
      state: waiting('CrashLoopBackOff', 'back-off 10s restarting failed container'),
      lastState: ended(
        'Error',
        1,
        1,
        'starting\n2026/11/29 18:00:00| FATAL: Bungled squid.conf\nTerminated abnormally.\n',
      ),
      restartCount: 2,
    }),
    'Provisioning',
    'CrashLoopBackOff; Squid ended with Error (exit code 1): FATAL: Bungled squid.conf, restarts: 2',
  ],
  [
    'Squid is killed for its memory in a loop',
    running({
      state: waiting('CrashLoopBackOff'),
      lastState: ended('OOMKilled', 137, 90, 'Adding nameserver'),
      restartCount: 4,
    }),
    'Provisioning',
    'CrashLoopBackOff; Squid ended with OOMKilled (exit code 137), restarts: 4',
  ],
  [
    'evicted',
    { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' },
    'Stopped',
    'Evicted: The node was low on resource: memory.',
  ],
  [
    'its node was shut down',
    { phase: 'Failed', reason: 'Terminated', message: 'Pod was terminated in response to imminent node shutdown.' },
    'Stopped',
    'Terminated: Pod was terminated in response to imminent node shutdown.',
  ],
  [
    'failed, without a word of its own',
    { phase: 'Failed', ...IP, containerStatuses: [squidStatus({ state: ended('OOMKilled', 137, 10) })] },
    'Stopped',
    'Squid ended with OOMKilled (exit code 137)',
  ],
  [
    'ended well, which no proxy should',
    { phase: 'Succeeded', ...IP, containerStatuses: [squidStatus({ state: ended('Completed', 0, 10) })] },
    'Stopped',
    'Squid ended with Completed (exit code 0)',
  ],
  [
    'its node is lost',
    { phase: 'Unknown', reason: 'NodeLost', message: 'Node node-1 which was running pod is unresponsive' },
    'Stopped',
    'its node node-1 is lost (Node node-1 which was running pod is unresponsive); if its node is lost, delete the Node object, or taint it node.kubernetes.io/out-of-service, for the pod to go',
  ],
];

test.each(STATES)('%s', async (_, status, state, reason) => {
  const namespace = await cluster().namespace();
  const provider = cluster().provider(namespace);
  await provider.create(a, never());
  await cluster().bind(namespace, a.name);
  // Binding says that it is scheduled; the table says what else, from scratch.
  await cluster().patchStatus(namespace, a.name, { conditions: null });
  await cluster().patchStatus(namespace, a.name, status);
  const seen = await provider.get(a, never());
  expect({ state: seen.state, reason: seen.reason }).toEqual({ state, reason });
  expect((await provider.list(never())).instances).toMatchObject([{ state }]);
});

test('being deleted is Stopped, and says who asked for it; it is gone only when its node has let it go', async () => {
  const namespace = await cluster().namespace();
  const { core } = cluster();
  const provider = cluster().provider(namespace);
  await provider.create(a, never());
  await cluster().bind(namespace, a.name);
  await cluster().patchStatus(namespace, a.name, runningStatus('10.1.0.7'));
  expect(await provider.delete(a, never())).toBe('deleting');
  expect(await provider.get(a, never())).toMatchObject({ state: 'Stopped', reason: 'it is being deleted' });
  const message = 'Taint manager: deleting due to NoExecute taint';
  const disruption = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager', message };
  await cluster().patchStatus(namespace, a.name, { conditions: [disruption] });
  expect((await provider.get(a, never())).reason).toBe(
    `it is being deleted: DeletionByTaintManager: ${message}; if its node is lost, delete the Node object, or taint it node.kubernetes.io/out-of-service, for the pod to go`,
  );
  // A create that finds it says what it is, and makes no second one.
  expect(await provider.create({ ...a, specHash: 'new' }, never())).toMatchObject({
    state: 'Stopped',
    specHash: a.specHash,
  });
  expect(await provider.delete(a, never())).toBe('deleting');
  await core.deleteNamespacedPod({ namespace, name: a.name, gracePeriodSeconds: 0 });
  expect(await provider.delete(a, never())).toBe('gone');
});
