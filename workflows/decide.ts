import { conditionOf, HealthyReason, ProvisionedReason, type Statement } from '../model/condition.ts';
import type { Instance } from '../model/instance.ts';
import type {
  Failure,
  Look,
  ObservedExternal,
  ObservedManaged,
  ObservedProxy,
  Report,
  Timing,
} from '../model/observation.ts';
import { ABANDON_ANNOTATION } from '../model/proxy.ts';

/** What a workflow remembers between passes, and across continue-as-new. The rest is read from the world each time. */
export interface Memory {
  /**
   * Whether a create may have made an instance that the CR doesn't name. `unknown` after a lost answer; undefined in a
   * workflow that is new to its CR and can't know what an earlier one did.
   */
  create?: 'none' | 'unknown';
  /** Consecutive failed passes, for the backoff. */
  failures: number;
  /** Consecutive instances that never ran, or stopped soon after. */
  losses: number;
  /** The incarnation that was lost last, so that it counts once however long its deletion takes. */
  lost?: number;
  /** The permanent error in the status is that the provider is not configured: mended by the operator, not by an edit. */
  unconfigured?: boolean;
  /** A person asked for a new instance. */
  replace: boolean;
}

export const BLANK_MEMORY: Memory = { failures: 0, losses: 0, replace: false };

/** Everything a decision rests on. */
export interface World<P extends ObservedProxy = ObservedProxy> {
  proxy: P;
  look?: Look;
  memory: Memory;
  timing: Timing;
  /** Milliseconds since the epoch. */
  now: number;
  /** In [0, 1): spreads the backoffs. */
  random: number;
}

export type Action = 'addFinalizer' | 'removeFinalizer' | 'create' | 'delete';

/** Until the next pass, in milliseconds, unless something wakes the workflow earlier. */
export interface Wait {
  after: number;
  because: string;
}

/** When the next pass comes: at once, after a wait, or never. */
export type Next = 'now' | 'finish' | Wait;

/** One step: at most one effect, then one report, then a wait. Report and next hold if the effect succeeds. */
export interface Decision {
  action?: Action;
  report?: Report;
  next: Next;
  memory: Memory;
}

/** An instance that lived this long was not lost to a crash loop. */
const SETTLED_MILLIS = 10 * 60_000;

/** Errors after which it is certain that a create made nothing. */
const REFUSALS: readonly string[] = [ProvisionedReason.PermanentError, ProvisionedReason.QuotaExceeded];

const NOT_PROBED: Statement = {
  status: 'Unknown',
  reason: HealthyReason.NotProbed,
  message: 'This instance has not been probed yet',
};

/** Spec §3 whole: from what is seen to the one next step. Pure. */
export function decide(world: World): Decision {
  const { proxy } = world;
  if (proxy.mode === 'External') return proxy.deleting ? settled(world, 'finish') : external(proxy, world);
  const managed = { ...world, proxy };
  return proxy.deleting ? deleting(managed) : provision(managed);
}

/** Whether `decide` wants to know how the instance is. False where a provider call could change nothing. */
export function needsLook({ proxy, memory }: Pick<World, 'proxy' | 'memory'>): boolean {
  if (proxy.mode === 'External' || !proxy.finalizer || !proxy.provider.configured) return false;
  if (proxy.deleting) return !proxy.abandon && mayHaveInstance(proxy, memory);
  if (latched(proxy, memory)) return false;
  return proxy.status.providerID !== undefined;
}

/** Whether the status says all of this already, so that nothing has to be written. */
export function isSaid(report: Report, { status, generation }: ObservedProxy): boolean {
  const { provisioned, healthy, hash, providerID, ip, port, incarnation, latencyMillis } = report;
  const others = [healthy, hash, providerID, incarnation, latencyMillis];
  const said = conditionOf(status.conditions, 'Provisioned');
  return (
    others.every((member) => member === undefined) &&
    (ip === undefined || ip === status.ip) &&
    (port === undefined || port === status.port) &&
    status.observedGeneration === generation &&
    said?.observedGeneration === generation &&
    said.status === provisioned?.status &&
    said.reason === provisioned.reason &&
    said.message === provisioned.message
  );
}

/** The step after a successful create: what the new instance means for the CR. */
export function afterCreate(world: World<ObservedManaged>, instance: Instance): Decision {
  const { proxy, memory } = world;
  const incarnation = (proxy.status.incarnation ?? 0) + 1;
  // Nothing that was said of an earlier instance or attempt counts for this one.
  const status = { providerID: instance.providerID, incarnation };
  const made: ObservedManaged = { ...proxy, recordedHash: instance.specHash, status };
  const seen = {
    ...world,
    proxy: made,
    look: { found: instance },
    memory: { ...memory, create: 'none', replace: false },
  } as const;
  const record = { hash: instance.specHash, providerID: instance.providerID, incarnation, healthy: NOT_PROBED };
  const { action, report, next, memory: after } = decide(seen);
  // The create was this pass's one effect; whatever else is due (an edit came in between) is the next one's.
  if (action) return { report: { generation: proxy.generation, ...record }, next: 'now', memory: seen.memory };
  return { report: { generation: proxy.generation, ...report, ...record }, next, memory: after };
}

/** The step when a create found that the world had changed: an attempt before the one that found it may have made something. */
export function afterStaleCreate({ memory, timing }: World): Decision {
  const next = { after: timing.backoffInitial, because: 'the Proxy changed meanwhile' };
  return { next, memory: { ...memory, create: 'unknown' } };
}

/** The step after a successful delete: where nothing is left, there is nothing to wait for. */
export function afterDelete(decision: Decision, outcome: 'gone' | 'deleting'): Decision {
  const polling = typeof decision.next === 'object' && decision.next.because === DELETION;
  return outcome === 'gone' && polling ? { ...decision, next: 'now' } : decision;
}

/** The step when a look or an effect failed. The error's class alone decides. */
export function afterFailure(world: World<ObservedManaged>, failure: Failure, action?: Action): Decision {
  const { proxy, timing } = world;
  const failures = world.memory.failures + 1;
  const memory: Memory = { ...world.memory, failures };
  if (action === 'create') {
    // A refusal made nothing, but an earlier attempt or an earlier create whose answer was lost may have.
    const refusal = failure.class !== 'Transient' && failure.attempt === 1;
    memory.create = refusal && !mayHaveInstance(proxy, world.memory) ? 'none' : 'unknown';
  }
  // The sweep that finds the provider back nudges all who wait for it: until then, none of them need hammer it.
  const { provider } = proxy;
  const unavailable = provider.configured && provider.unavailable;
  const pause = unavailable ? Math.max(timing.backoffMax, backoff(world, failures)) : backoff(world, failures);
  const say = (reason: string) => trouble(proxy, memory, reason, failure.message);

  if (proxy.deleting) {
    // Never latched: a CR that could not be deleted today must go tomorrow, once its provider lets it.
    const remedy = failure.class === 'Permanent' && proxy.provider.configured ? `; or ${leaveBehind(proxy)}` : '';
    const message = `Can't delete ${proxy.instanceName} yet, trying again: ${failure.message}${remedy}`;
    const wait = failure.class === 'QuotaExceeded' ? timing.quotaRetry : (failure.retryAfterMillis ?? pause);
    return step(world, notProvisioned(ProvisionedReason.Deleting, message), wait, 'retry', memory);
  }
  switch (failure.class) {
    case 'Permanent': {
      const statement = {
        ...notProvisioned(ProvisionedReason.PermanentError, failure.message),
        status: absence(proxy, memory),
      };
      return step(world, statement, timing.resync, 'an edit of the spec', {
        ...memory,
        replace: false,
        unconfigured: false,
      });
    }
    case 'QuotaExceeded':
      return step(world, say(ProvisionedReason.QuotaExceeded), timing.quotaRetry, 'quota', memory);
    case 'RateLimited':
      return step(world, say(ProvisionedReason.RateLimited), failure.retryAfterMillis ?? pause, 'rate limit', memory);
    case 'Transient':
      return step(world, say(ProvisionedReason.TransientError), pause, 'retry', memory);
  }
}

const DELETION = 'deletion';

function deleting(world: World<ObservedManaged>): Decision {
  const { proxy, look, memory, timing } = world;
  if (!proxy.finalizer) return settled(world, 'finish');
  if (!mayHaveInstance(proxy, memory)) return { action: 'removeFinalizer', next: 'finish', memory };
  if (proxy.abandon) return abandon(world);
  if (!proxy.provider.configured) return afterFailure(world, unconfigured(proxy, proxy.provider));
  if (!look) return settled(world, 'now');
  if ('failed' in look) return afterFailure(world, look.failed);
  if ('absent' in look) return { action: 'removeFinalizer', next: 'finish', memory };
  const statement = notProvisioned(ProvisionedReason.Deleting, `Deleting ${look.found.name}`);
  return { action: 'delete', ...step(world, statement, timing.deletionPoll, DELETION) };
}

/** Said first, in the status and by an Event, and done in the next pass: nothing is left behind in silence. */
function abandon({ proxy, memory }: World<ObservedManaged>): Decision {
  if (conditionOf(proxy.status.conditions, 'Provisioned')?.reason === ProvisionedReason.Abandoned)
    return { action: 'removeFinalizer', next: 'finish', memory };
  const { instanceName, provider, status } = proxy;
  const message = `Leaving ${status.providerID ?? `${instanceName} of ${provider.name}`} behind, as ${ABANDON_ANNOTATION} asks`;
  const provisioned = notProvisioned(ProvisionedReason.Abandoned, message);
  return { report: { generation: proxy.generation, provisioned }, next: 'now', memory };
}

function external(proxy: ObservedExternal, world: World): Decision {
  const { ip, port } = proxy.status;
  const moved = ip !== proxy.host || port !== proxy.port;
  const report: Report = {
    generation: proxy.generation,
    ip: proxy.host,
    port: proxy.port,
    provisioned: {
      status: 'True',
      reason: ProvisionedReason.ExternalEndpoint,
      message: 'Someone else runs this proxy; only its health is ours to watch',
    },
    ...(moved && { healthy: NOT_PROBED, latencyMillis: null }),
  };
  return { ...settled(world), report };
}

function provision(world: World<ObservedManaged>): Decision {
  const { proxy, memory, look } = world;
  const { provider, desired, status } = proxy;
  if (!proxy.finalizer) {
    // Whatever this name's machine is, this CR can't have made it: nothing is created before the finalizer is there.
    const create = status.providerID ? memory.create : 'none';
    return { action: 'addFinalizer', next: 'now', memory: { ...memory, ...(create && { create }) } };
  }
  if (!provider.configured) return withoutProvider(world, unconfigured(proxy, provider));
  if (latched(proxy, memory)) return settled(world);
  if ('cloudInitError' in desired) return withoutCloudInit(world, desired.cloudInitError);
  if (!status.providerID) return refused(proxy) ? announceCreate(world) : { action: 'create', next: 'now', memory };
  if (!look) return settled(world, 'now');
  if ('failed' in look) return afterFailure(world, look.failed);
  if (proxy.recordedHash === undefined) {
    const hash = 'found' in look ? look.found.specHash : desired.hash;
    return { ...settled(world, 'now'), report: { generation: proxy.generation, hash } };
  }
  if ('absent' in look) return forget(world, desired.hash);
  if (memory.replace || proxy.recordedHash !== desired.hash) return replace(world, look.found);
  return represent(world, look.found);
}

/** Once tried again, a refusal no longer proves that there is no instance: the status must not go on saying so. */
function announceCreate({ proxy, memory }: World<ObservedManaged>): Decision {
  const provisioned: Statement = {
    status: 'Unknown',
    reason: ProvisionedReason.Creating,
    message: 'Trying again to make the instance',
  };
  return { report: { generation: proxy.generation, provisioned }, next: 'now', memory };
}

/** The instance is gone: the next pass makes a new one under the same name. */
function forget(world: World<ObservedManaged>, hash: string): Decision {
  const { proxy, memory } = world;
  const reason = conditionOf(proxy.status.conditions, 'Provisioned')?.reason;
  const expected = reason === ProvisionedReason.Replacing || reason === ProvisionedReason.Stopped;
  const message = expected ? 'The old instance is gone; making the new one' : 'The instance is gone; making a new one';
  return {
    report: {
      generation: proxy.generation,
      provisioned: notProvisioned(expected && reason ? reason : ProvisionedReason.Creating, message),
      hash,
      ...NO_INSTANCE,
    },
    next: 'now',
    memory: { ...memory, create: 'none', replace: false, failures: 0 },
  };
}

const NO_INSTANCE = { providerID: null, ip: null, port: null, latencyMillis: null, healthy: NOT_PROBED } as const;
const UNREACHABLE = { ip: null, port: null, latencyMillis: null, healthy: NOT_PROBED } as const;

function replace(world: World<ObservedManaged>, instance: Instance): Decision {
  const why = world.memory.replace ? 'a replacement was asked for' : 'its spec or cloud-init changed';
  const statement = notProvisioned(ProvisionedReason.Replacing, `Replacing ${instance.name}: ${why}`);
  return discard(world, statement, world.timing.deletionPoll, DELETION);
}

/** What an instance of the right making says about its proxy. */
function represent(world: World<ObservedManaged>, instance: Instance): Decision {
  const { proxy, memory, timing, now } = world;
  const age = now - Date.parse(instance.createdAt);
  switch (instance.state) {
    case 'Running': {
      const moved = proxy.status.ip !== instance.ip || proxy.status.port !== proxy.port;
      const report: Report = {
        generation: proxy.generation,
        provisioned: { status: 'True', reason: ProvisionedReason.Created, message: `${instance.name} is running` },
        ...(instance.ip && { ip: instance.ip }),
        port: proxy.port,
        ...(moved && { healthy: NOT_PROBED, latencyMillis: null }),
      };
      const losses = age > SETTLED_MILLIS ? 0 : memory.losses;
      return { ...settled({ ...world, memory: { ...memory, losses } }), report };
    }
    case 'Provisioning': {
      if (now - comingUpSince(world, instance) > timing.provisioningTimeout) {
        const minutes = Math.round(timing.provisioningTimeout / 6000) / 10;
        const message = `${instance.name} did not run within ${minutes} min; deleting it to try again${because(instance)}`;
        return lose(world, ProvisionedReason.ProvisioningTimeout, message, memory.losses + 1);
      }
      const message = `${instance.name} is on its way up${because(instance)}`;
      const statement = notProvisioned(ProvisionedReason.Provisioning, message);
      return step(world, statement, timing.provisioningPoll, 'provisioning', { ...memory, failures: 0 });
    }
    case 'Stopped': {
      const message = `${instance.name} has stopped${because(instance)}; replacing it`;
      return lose(world, ProvisionedReason.Stopped, message, age > SETTLED_MILLIS ? 1 : memory.losses + 1);
    }
  }
}

/** An instance that ran before has its time from when it was first seen not to, not from when it was made. */
function comingUpSince({ proxy, now }: World<ObservedManaged>, { createdAt }: Instance): number {
  const provisioned = conditionOf(proxy.status.conditions, 'Provisioned');
  if (provisioned?.status === 'True') return now;
  return Math.max(Date.parse(createdAt), Date.parse(provisioned?.lastTransitionTime ?? createdAt));
}

/** Deletes an instance that is no good. The first loss is mended at once; a series of them waits longer each time. */
function lose(world: World<ObservedManaged>, reason: string, message: string, count: number): Decision {
  const { incarnation = 0 } = world.proxy.status;
  const losses = world.memory.lost === incarnation ? world.memory.losses : count;
  const memory = { ...world.memory, losses, lost: incarnation };
  const statement = notProvisioned(reason, message);
  if (losses === 1) return discard(world, statement, world.timing.deletionPoll, DELETION, memory);
  return discard(world, statement, backoff(world, losses), 'backoff after repeated losses', memory);
}

function discard(
  world: World<ObservedManaged>,
  statement: Statement,
  after: number,
  because: string,
  memory = world.memory,
): Decision {
  const decision = step(world, statement, after, because, memory);
  return {
    action: 'delete',
    ...decision,
    report: { ...UNREACHABLE, ...decision.report, generation: world.proxy.generation },
  };
}

/** Failed like any permanent error, but looked at again by and by: no call is made meanwhile. */
function withoutProvider(world: World<ObservedManaged>, failure: Failure): Decision {
  const { report, memory } = afterFailure(world, failure);
  const next = { after: backoff(world, memory.failures), because: 'the provider to be configured' };
  return { ...(report && { report }), next, memory: { ...memory, unconfigured: true } };
}

function withoutCloudInit(world: World<ObservedManaged>, message: string): Decision {
  const { proxy, look } = world;
  // Nothing can be made without it, but an instance that is there must still be what the status says of it.
  if (look && 'failed' in look) return afterFailure(world, look.failed);
  if (look && 'absent' in look) return lostWithoutCloudInit(world, message);
  if (look && look.found.state === 'Stopped') return represent(world, look.found);
  const failures = world.memory.failures + 1;
  const memory = { ...world.memory, failures };
  const statement = trouble(proxy, memory, ProvisionedReason.CloudInitError, message);
  return step(world, statement, backoff(world, failures), 'cloud-init', memory);
}

function lostWithoutCloudInit(world: World<ObservedManaged>, message: string): Decision {
  const failures = world.memory.failures + 1;
  const memory: Memory = { ...world.memory, create: 'none', failures };
  const statement = notProvisioned(ProvisionedReason.CloudInitError, message);
  const decision = step(world, statement, backoff(world, failures), 'cloud-init', memory);
  return { ...decision, report: { ...NO_INSTANCE, ...decision.report, generation: world.proxy.generation } };
}

/** Nothing to do until something changes. */
function settled(world: World, next?: Next): Decision {
  const idle: Next = { after: world.timing.resync, because: 'resync' };
  return { next: next ?? idle, memory: { ...world.memory, failures: 0, unconfigured: false } };
}

function step(
  world: World,
  provisioned: Statement,
  after: number,
  because: string,
  memory: Memory = world.memory,
): Decision {
  return { report: { generation: world.proxy.generation, provisioned }, next: { after, because }, memory };
}

function notProvisioned(reason: string, message: string): Statement {
  return { status: 'False', reason, message };
}

/** A passing trouble takes nothing from a proxy that runs: it is said, but the proxy stays provisioned. */
function trouble(proxy: ObservedManaged, memory: Memory, reason: string, message: string): Statement {
  const running = conditionOf(proxy.status.conditions, 'Provisioned')?.status === 'True';
  return running
    ? { status: 'True', reason, message: `Running, but: ${message}` }
    : { status: absence(proxy, memory), reason, message };
}

/**
 * `Unknown` where a create may have made an instance that nobody has seen: the status itself must say so, for the
 * day on which a new workflow has only that to go by.
 */
const absence = (proxy: ObservedManaged, memory: Memory): Statement['status'] =>
  !proxy.status.providerID && mayHaveInstance(proxy, memory) ? 'Unknown' : 'False';

/** An error that only an edit can mend was recorded for this very spec. */
function latched({ status, generation }: ObservedManaged, memory: Memory): boolean {
  const provisioned = conditionOf(status.conditions, 'Provisioned');
  return (
    !memory.replace &&
    !memory.unconfigured &&
    provisioned?.reason === ProvisionedReason.PermanentError &&
    provisioned.observedGeneration === generation
  );
}

/** Whether there may be an instance that the provider has to be asked about. */
export function mayHaveInstance(proxy: ObservedManaged, memory: Memory): boolean {
  if (proxy.status.providerID) return true;
  return memory.create ? memory.create === 'unknown' : !refused(proxy);
}

/** The status says that no create has ever made anything. */
function refused({ status }: ObservedManaged): boolean {
  const provisioned = conditionOf(status.conditions, 'Provisioned');
  return provisioned?.status === 'False' && REFUSALS.includes(provisioned.reason);
}

const leaveBehind = ({ instanceName }: ObservedManaged): string =>
  `leave the instance behind: kubectl annotate proxy NAME ${ABANDON_ANNOTATION}=${instanceName}`;

function unconfigured(proxy: ObservedManaged, { name, known }: { name: string; known: string[] }): Failure {
  const remedy = proxy.deleting
    ? `configure it again so that the instance can be deleted, or ${leaveBehind(proxy)}`
    : 'add it to the providers file, or make another Proxy';
  const list = known.length > 0 ? known.join(', ') : 'none';
  return {
    class: 'Permanent',
    message: `Provider "${name}" is not configured (known: ${list}); ${remedy}`,
    attempt: 1,
  };
}

function because(instance: Instance): string {
  return instance.reason ? ` (${instance.reason})` : '';
}

/** Exponential, between half and the whole of the nominal wait, so that a fleet's retries spread out. */
function backoff({ timing, random }: World, attempt: number): number {
  const nominal = Math.min(timing.backoffMax, timing.backoffInitial * 2 ** Math.min(attempt - 1, 20));
  return Math.round(nominal * (0.5 + random / 2));
}
