import type { V1ContainerStateTerminated, V1ContainerStatus, V1Pod } from '@kubernetes/client-node';
import type { InstanceState } from '../../../model/instance.ts';
import { SQUID_CONTAINER } from './pod.ts';

/** A Squid that ran for so long and then ended is expected back in a moment; one that ended sooner crashes in a loop. */
const SETTLED_MILLIS = 60_000;
const WORDS_LIMIT = 300;

export interface PodState {
  state: InstanceState;
  /** For people. */
  reason?: string;
}

/**
 * What a pod's status means.
 *
 * - Whether it is `Ready` is asked until it has started, and not afterwards: a Squid that is too busy to accept for a
 *   moment is a matter of health, and no reason to make another one.
 * - Nor is it one that Squid ended after a while: the kubelet starts it again in place, and its address stays.
 * - A pod whose node is lost may still run there. It becomes `Stopped` when the cluster gives it up (by default after
 *   5 minutes), and leaves only with its node: see `lostNode`.
 */
export function podStateOf(pod: V1Pod): PodState {
  const { metadata, status = {} } = pod;
  if (status.phase === 'Unknown' || status.reason === 'NodeLost') return { state: 'Stopped', reason: lostNode(pod) };
  if (metadata?.deletionTimestamp) return { state: 'Stopped', reason: beingDeleted(pod) };
  const squid = status.containerStatuses?.find(({ name }) => name === SQUID_CONTAINER);
  switch (status.phase) {
    case 'Pending':
    case undefined:
      return { state: 'Provisioning', reason: waitingFor(pod, squid) };
    case 'Running':
      return running(status.podIP, squid);
    case 'Failed':
    case 'Succeeded':
      return { state: 'Stopped', reason: endOf(pod, squid) };
    default:
      return { state: 'Stopped', reason: `its phase is ${status.phase}, which is not known here` };
  }
}

function running(ip: string | undefined, squid: V1ContainerStatus | undefined): PodState {
  if (!ip) return { state: 'Provisioning', reason: 'it has no address yet' };
  const last = squid?.state?.terminated ?? squid?.lastState?.terminated;
  if (squid?.state?.running && squid.started) return { state: 'Running' };
  if (last && !squid?.state?.waiting && ranFor(last) >= SETTLED_MILLIS)
    return { state: 'Running', reason: `Squid ${howItEnded(last)}, and is being started again` };
  const ended = last ? `; Squid ${howItEnded(last)}, restarts: ${squid?.restartCount ?? 0}` : '';
  const { waiting } = squid?.state ?? {};
  const now =
    waiting?.reason ?? (squid?.state?.running ? 'Squid does not accept connections yet' : 'Squid is starting');
  return { state: 'Provisioning', reason: `${now}${ended}` };
}

/** The scheduler's words, then those of the kubelet: ErrImagePull, ImagePullBackOff, CreateContainerConfigError, … */
function waitingFor({ status }: V1Pod, squid: V1ContainerStatus | undefined): string {
  const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status === 'False') return said(scheduled.reason ?? 'Unschedulable', scheduled.message);
  const { waiting } = squid?.state ?? {};
  if (waiting) return said(waiting.reason ?? 'its container waits', waiting.message);
  return scheduled ? 'its node has not taken it up yet' : 'it waits for a node';
}

/** Evicted, NodeShutdown, OutOfcpu, Preempting, … are the pod's own reasons; OOMKilled is its container's. */
function endOf({ status }: V1Pod, squid: V1ContainerStatus | undefined): string {
  if (status?.reason) return said(status.reason, status.message);
  const last = squid?.state?.terminated ?? squid?.lastState?.terminated;
  return last ? `Squid ${howItEnded(last)}` : `its phase is ${status?.phase}`;
}

function beingDeleted(pod: V1Pod): string {
  const disruption = pod.status?.conditions?.find(
    ({ type, status }) => type === 'DisruptionTarget' && status === 'True',
  );
  if (!disruption) return 'it is being deleted';
  const why = `it is being deleted: ${said(disruption.reason ?? 'disrupted', disruption.message)}`;
  return disruption.reason === 'DeletionByTaintManager' ? `${why}; ${IF_LOST}` : why;
}

/** The pod is never deleted by force: if its node still runs, so would the old proxy, beside the new one. */
const IF_LOST =
  'if its node is lost, delete the Node object, or taint it node.kubernetes.io/out-of-service, for the pod to go';

const lostNode = ({ spec, status }: V1Pod): string =>
  `its node ${spec?.nodeName ?? ''} is lost${status?.message ? ` (${short(status.message)})` : ''}; ${IF_LOST}`;

function howItEnded({ reason, exitCode, signal, message = '' }: V1ContainerStateTerminated): string {
  const how = `ended with ${reason ?? 'Error'} (${signal ? `signal ${signal}` : `exit code ${exitCode}`})`;
  // Squid's other lines are of no help: what it was at, and what it has used, when it ended.
  const fatal = message.split('\n').find((line) => line.includes('FATAL'));
  return fatal ? `${how}: ${short(fatal.slice(fatal.indexOf('FATAL')).trim())}` : how;
}

const ranFor = ({ startedAt, finishedAt }: V1ContainerStateTerminated): number =>
  startedAt && finishedAt ? finishedAt.getTime() - startedAt.getTime() : 0;

const said = (reason: string, message: string | undefined): string =>
  message ? `${reason}: ${short(message)}` : reason;

const short = (text: string): string => (text.length > WORDS_LIMIT ? `${text.slice(0, WORDS_LIMIT)}…` : text);
