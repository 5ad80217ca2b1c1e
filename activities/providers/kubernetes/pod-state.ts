import type { V1ContainerStatus, V1Pod, V1PodCondition } from '@kubernetes/client-node';
import type { InstanceState } from '../../../model/instance.ts';
import { SQUID_CONTAINER } from './pod.ts';
import { hadSettled, howSquidEnded } from './squid-end.ts';
import { said } from './words.ts';

/** What takes longer than this has a cause that somebody should look for. */
const LONG_MILLIS = 60_000;
/** How long it is said of a Squid that runs that it was restarted. */
const RECENT_MILLIS = 10 * 60_000;

export interface PodState {
  state: InstanceState;
  /** For people. */
  reason?: string;
}

/**
 * What a pod's status means.
 *
 * - Whether it is `Ready` is asked until it has started, and not afterwards: a Squid that is too busy to answer for a
 *   moment is a matter of health, and no reason to make another one.
 * - Nor is it one that Squid ended after a while: the kubelet starts it again in place, and its address stays.
 * - A pod whose node is lost may still run there, and is `Running` until the cluster gives it up (by default after 5
 *   minutes). Then it is being deleted, and leaves only with its node: see `IF_LOST`.
 *
 * @param now in milliseconds since 1970
 */
export function podStateOf(pod: V1Pod, now: number): PodState {
  const { metadata, spec, status = {} } = pod;
  // Kubernetes 1.35 has nothing left that writes these; what a lost node comes to today is below.
  if (status.phase === 'Unknown' || status.reason === 'NodeLost')
    return {
      state: 'Stopped',
      reason: `${said(`its node ${spec?.nodeName ?? ''} is lost`, status.message)}; ${IF_LOST}`,
    };
  if (metadata?.deletionTimestamp) return { state: 'Stopped', reason: beingDeleted(pod, now) };
  const squid = status.containerStatuses?.find(({ name }) => name === SQUID_CONTAINER);
  switch (status.phase) {
    case 'Pending':
    case undefined:
      return { state: 'Provisioning', reason: waitingFor(pod, squid, now) };
    case 'Running':
      return running(pod, squid, now);
    case 'Failed':
    case 'Succeeded':
      return { state: 'Stopped', reason: endOf(pod, squid) };
    default:
      return { state: 'Stopped', reason: `its phase is ${status.phase}, which is not known here` };
  }
}

function running(pod: V1Pod, squid: V1ContainerStatus | undefined, now: number): PodState {
  if (!pod.status?.podIP) return { state: 'Provisioning', reason: 'it has no address yet' };
  const { running: runs, waiting, terminated } = squid?.state ?? {};
  if (squid && runs && squid.started) {
    const reason = troubleOf(pod, squid, now);
    return { state: 'Running', ...(reason && { reason }) };
  }
  const last = terminated ?? squid?.lastState?.terminated;
  if (last && !waiting && hadSettled(last))
    return { state: 'Running', reason: `${howSquidEnded(last)}, and is being started again` };
  // Of a back-off, what matters is what made it end; its own words tell the seconds.
  if (waiting && waiting.reason !== 'CrashLoopBackOff')
    return { state: 'Provisioning', reason: said(waiting.reason ?? 'its container waits', waiting.message) };
  const does = waiting?.reason ?? (runs ? 'Squid does not answer yet' : 'Squid is starting');
  return { state: 'Provisioning', reason: last ? `${does}; ${howSquidEnded(last)}, ${restartsOf(squid)}` : does };
}

/** What is to be said of a Squid that runs. */
function troubleOf(pod: V1Pod, squid: V1ContainerStatus, now: number): string | undefined {
  // A kubelet says the same of its pod and of its one container. That the pod is not is the node controller's word.
  if (squid.ready && conditionOf(pod, 'Ready')?.status === 'False')
    return `its node ${pod.spec?.nodeName ?? ''} is not ready`;
  const last = squid.lastState?.terminated;
  const recent = last?.finishedAt && now - last.finishedAt.getTime() < RECENT_MILLIS;
  return recent ? `${howSquidEnded(last)}, ${restartsOf(squid)}` : undefined;
}

/** The scheduler's words, then those of the kubelet: ErrImagePull, ImagePullBackOff, CreateContainerConfigError, … */
function waitingFor(pod: V1Pod, squid: V1ContainerStatus | undefined, now: number): string {
  const scheduled = conditionOf(pod, 'PodScheduled');
  if (scheduled?.status === 'False') return said(scheduled.reason ?? 'Unschedulable', scheduled.message);
  const { waiting } = squid?.state ?? {};
  if (!waiting) return scheduled ? 'its node has not taken it up yet' : 'it waits for a node';
  const { reason = 'its container waits', message } = waiting;
  const { namespace, name } = pod.metadata ?? {};
  const since = pod.status?.startTime?.getTime() ?? now;
  // What holds it up (a large image, a network that is not there) the kubelet tells only in events.
  return !message && now - since > LONG_MILLIS
    ? `${reason} for more than a minute; see kubectl describe pod -n ${namespace} ${name}`
    : said(reason, message);
}

/** Evicted, NodeShutdown, OutOfcpu, Preempting, … are the pod's own reasons; OOMKilled is its container's. */
function endOf({ status }: V1Pod, squid: V1ContainerStatus | undefined): string {
  if (status?.reason) return said(status.reason, status.message);
  const last = squid?.state?.terminated ?? squid?.lastState?.terminated;
  return last ? howSquidEnded(last) : `its phase is ${status?.phase}`;
}

/** Who asked for it, where a controller did, and why it does not go. */
function beingDeleted(pod: V1Pod, now: number): string {
  const { finalizers = [], deletionTimestamp } = pod.metadata ?? {};
  const disruption = conditionOf(pod, 'DisruptionTarget');
  const disrupted = disruption?.status === 'True' ? disruption : undefined;
  // The time includes the grace period.
  const late = now - (deletionTimestamp?.getTime() ?? now) > LONG_MILLIS;
  return [
    said('it is being deleted', disrupted && said(disrupted.reason ?? 'disrupted', disrupted.message)),
    ...(finalizers.length > 0 ? [`its finalizers keep it: ${finalizers.join(', ')}`] : []),
    ...(late || disrupted?.reason === 'DeletionByTaintManager' ? [IF_LOST] : []),
  ].join('; ');
}

/** The pod is never deleted by force: if its node still runs, so would the old proxy, beside the new one. */
const IF_LOST =
  'if its node is lost, delete the Node object, or taint it node.kubernetes.io/out-of-service, for the pod to go';

const conditionOf = ({ status }: V1Pod, type: string): V1PodCondition | undefined =>
  status?.conditions?.find((condition) => condition.type === type);

const restartsOf = (squid: V1ContainerStatus | undefined): string => `restarts: ${squid?.restartCount ?? 0}`;
