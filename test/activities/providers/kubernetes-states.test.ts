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
/** What a runtime says that could not start the container: it began, so the kubelet, in 1970. */
const neverRan = (reason: string, message?: string) => ({
  terminated: { ...ended(reason, 128, 0, message).terminated, startedAt: '1970-01-01T00:00:00Z' },
});
const NO_PROGRAM =
  'failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed:\n' +
  'unable to start container process: exec: "/usr/sbin/squid": stat /usr/sbin/squid: no such file or directory: unknown';
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
  [
    'its runtime can not make its container',
    pending({ state: waiting('CreateContainerError', 'context deadline exceeded') }),
    'Provisioning',
    'CreateContainerError: context deadline exceeded',
  ],
  [
    'its image has no Squid',
    running({
      state: waiting('RunContainerError', NO_PROGRAM),
      lastState: neverRan('StartError', NO_PROGRAM),
      restartCount: 1,
    }),
    'Provisioning',
    `RunContainerError: ${NO_PROGRAM.replace('\n', ' ')}`,
  ],
  [
    'its image has no Squid, again and again',
    running({
      state: waiting('CrashLoopBackOff', 'back-off 10s restarting failed container'),
      lastState: neverRan('StartError', NO_PROGRAM),
      restartCount: 2,
    }),
    'Provisioning',
    `CrashLoopBackOff; Squid ended with StartError (exit code 128): ${NO_PROGRAM.replace('\n', ' ')}, restarts: 2`,
  ],
  [
    'its image has no Squid, between two looks of the kubelet',
    running({ state: neverRan('StartError') }),
    'Provisioning',
    'Squid is starting; Squid ended with StartError (exit code 128), restarts: 0',
  ],
  [
    'its container can not run, as Docker says it',
    running({ state: neverRan('ContainerCannotRun', 'no such file') }),
    'Provisioning',
    'Squid is starting; Squid ended with ContainerCannotRun (exit code 128): no such file, restarts: 0',
  ],
  [
    'words that go on and on: what was tried is at their beginning, and why not at their end',
    pending({ state: waiting('ErrImagePull', `${'pull '.repeat(99)}${'denied'.repeat(99)}`) }),
    'Provisioning',
    `ErrImagePull: ${'pull '.repeat(30)} … ${'denied'.repeat(25)}`,
  ],
  ['without an address', { phase: 'Running' }, 'Provisioning', 'it has no address yet'],
  [
    'Squid does not listen yet',
    running({ state: { running: { startedAt: ago(1) } }, started: false }),
    'Provisioning',
    'Squid does not answer yet',
  ],
  ['Squid answers', runningStatus('10.1.0.7'), 'Running', undefined],
  [
    'Squid has started, and is too busy to answer just now',
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
    'Squid was killed for its memory moments ago, and runs again',
    running({
      state: { running: { startedAt: ago(4) } },
      started: true,
      lastState: ended('OOMKilled', 137, 3600),
      restartCount: 3,
    }),
    'Running',
    'Squid ended with OOMKilled (exit code 137), restarts: 3',
  ],
  [
    'Squid was killed for its memory once, and has run for a while since',
    running({
      state: { running: { startedAt: ago(899) } },
      started: true,
      lastState: { terminated: { reason: 'OOMKilled', exitCode: 137, startedAt: ago(999), finishedAt: ago(900) } },
      restartCount: 1,
    }),
    'Running',
    undefined,
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
    'its node does not report any more, of which the node controller says this and the kubelet nothing',
    { ...runningStatus('10.1.0.7'), conditions: [{ type: 'Ready', status: 'False' }] },
    'Running',
    'its node node-1 is not ready',
  ],
  [
    'its node is lost, as older clusters say it',
    { phase: 'Unknown', reason: 'NodeLost', message: 'Node node-1 which was running pod is unresponsive' },
    'Stopped',
    'its node node-1 is lost: Node node-1 which was running pod is unresponsive; if its node is lost, delete the Node object, or taint it node.kubernetes.io/out-of-service, for the pod to go',
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

test('a Squid that never answered is not one that ran for a while, however late it is killed for it', async () => {
  const namespace = await cluster().namespace();
  const provider = cluster().provider(namespace);
  await provider.create(a, never());
  const { spec } = await cluster().core.readNamespacedPod({ namespace, name: a.name });
  const { periodSeconds = 0, timeoutSeconds = 0, failureThreshold = 0 } = spec?.containers[0]?.startupProbe ?? {};
  const lived = failureThreshold * Math.max(periodSeconds, timeoutSeconds) + (spec?.terminationGracePeriodSeconds ?? 0);
  await cluster().bind(namespace, a.name);
  for (const state of [ended('Error', 137, lived + 30), { running: { startedAt: ago(1) } }]) {
    const status = { state, started: false, lastState: ended('Error', 137, lived + 30), restartCount: 1 };
    await cluster().patchStatus(namespace, a.name, running(status));
    expect(await provider.get(a, never())).toMatchObject({ state: 'Provisioning' });
  }
});

test('a container that takes long to make says where the kubelet tells why', async () => {
  const namespace = await cluster().namespace();
  const provider = cluster().provider(namespace);
  await provider.create(a, never());
  await cluster().bind(namespace, a.name);
  const status = { ...pending({ state: waiting('ContainerCreating') }), startTime: ago(90) };
  await cluster().patchStatus(namespace, a.name, status);
  expect((await provider.get(a, never())).reason).toBe(
    `ContainerCreating for more than a minute; see kubectl describe pod -n ${namespace} ${a.name}`,
  );
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
  const aMinuteLater = cluster().provider(namespace, {}, { now: () => Date.now() + 70_000 });
  const lost =
    'if its node is lost, delete the Node object, or taint it node.kubernetes.io/out-of-service, for the pod to go';
  expect((await aMinuteLater.get(a, never())).reason).toBe(`it is being deleted; ${lost}`);
  const message = 'Taint manager: deleting due to NoExecute taint';
  const disruption = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager', message };
  await cluster().patchStatus(namespace, a.name, { conditions: [disruption] });
  expect((await provider.get(a, never())).reason).toBe(
    `it is being deleted: DeletionByTaintManager: ${message}; ${lost}`,
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

test('a pod that finalizers keep names them', async () => {
  const namespace = await cluster().namespace();
  const { core } = cluster();
  const provider = cluster().provider(namespace);
  await provider.create(a, never());
  const setFinalizers = async (finalizers: string[]) => {
    const pod = await core.readNamespacedPod({ namespace, name: a.name });
    await core.replaceNamespacedPod({
      namespace,
      name: a.name,
      body: { ...pod, metadata: { ...pod.metadata, finalizers } },
    });
  };
  await setFinalizers(['example.com/audit', 'example.com/billing']);
  expect(await provider.delete(a, never())).toBe('deleting');
  expect((await provider.get(a, never())).reason).toBe(
    'it is being deleted; its finalizers keep it: example.com/audit, example.com/billing',
  );
  await setFinalizers([]);
  expect(await provider.delete(a, never())).toBe('gone');
});
