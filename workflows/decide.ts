import { conditionOf, ProvisionedReason, type Statement } from '../model/condition.ts';
import type { Instance } from '../model/instance.ts';
import type { ObservedExternal, ObservedManaged, ObservedProxy, Report } from '../model/observation.ts';
import { ABANDON_ANNOTATION } from '../model/proxy.ts';
import {
  backoff,
  DELETION,
  type Decision,
  type Memory,
  NO_INSTANCE,
  NOT_PROBED,
  notProvisioned,
  settled,
  step,
  type World,
} from './decision.ts';
import { afterFailure, latched, mayHaveInstance, refused, trouble, unconfigured, withoutProvider } from './failures.ts';
import { because, forget, replace, represent } from './instance-states.ts';
import { zoneToTry } from './zones.ts';

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
  if (proxy.status.providerID !== undefined) return true;
  // What a lost create may have made in a zone has to be found before one is made in another.
  return proxy.provider.zonal !== undefined && mayHaveInstance(proxy, memory);
}

/** Whether the status says all of this already. Only runs without the patch `publish-every-report` still ask. */
export function isSaid(report: Report, { status, generation }: ObservedProxy): boolean {
  const { provisioned, healthy, hash, providerID, zone, ip, port, incarnation, latencyMillis } = report;
  const others = [healthy, hash, providerID, zone, incarnation, latencyMillis];
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

/** The step after a successful create, or when the instance of a lost one is found: what it means for the CR. */
export function afterCreate(world: World<ObservedManaged>, instance: Instance): Decision {
  const { proxy, memory } = world;
  const incarnation = (proxy.status.incarnation ?? 0) + 1;
  // Nothing that was said of an earlier instance or attempt counts for this one.
  const { zone } = proxy.status;
  const status = { ...(zone !== undefined && { zone }), providerID: instance.providerID, incarnation };
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

function deleting(world: World<ObservedManaged>): Decision {
  const { proxy, look, memory, timing } = world;
  if (!proxy.finalizer) return settled(world, 'finish');
  if (!mayHaveInstance(proxy, memory)) return { action: 'removeFinalizer', next: 'finish', memory };
  if (proxy.abandon) return abandon(world);
  if (!proxy.provider.configured) return afterFailure(world, unconfigured(proxy, proxy.provider));
  if (!look) return settled(world, 'now');
  if ('failed' in look) return afterFailure(world, look.failed);
  if ('absent' in look) return { action: 'removeFinalizer', next: 'finish', memory };
  const statement = notProvisioned(ProvisionedReason.Deleting, `Deleting ${look.found.name}${because(look.found)}`);
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
  if (!status.providerID && look && 'found' in look) return afterCreate(world, look.found);
  if ('cloudInitError' in desired) return withoutCloudInit(world, desired.cloudInitError);
  if (look && 'failed' in look) return afterFailure(world, look.failed);
  if (!status.providerID) return make(look ? { ...world, memory: { ...memory, create: 'none' } } : world);
  if (!look) return settled(world, 'now');
  if (proxy.recordedHash === undefined) {
    const hash = 'found' in look ? look.found.specHash : desired.hash;
    return { ...settled(world, 'now'), report: { generation: proxy.generation, hash } };
  }
  if ('absent' in look) return forget(world, desired.hash);
  if (memory.replace || proxy.recordedHash !== desired.hash) return replace(world, look.found);
  return represent(world, look.found);
}

/** Creates an instance, once the status tells what has to be known should nothing more be heard of the create. */
function make({ proxy, memory }: World<ObservedManaged>): Decision {
  const zone = zoneToTry(proxy);
  const moving = zone !== proxy.status.zone;
  // Once tried again, a refusal no longer proves that there is no instance: the status must not go on saying so.
  const again = refused(proxy);
  if (!moving && !again) return { action: 'create', next: 'now', memory };
  const report: Report = {
    generation: proxy.generation,
    ...(moving && { zone: zone ?? null }),
    ...(again && { provisioned: TRYING_AGAIN }),
  };
  return { report, next: 'now', memory };
}

const TRYING_AGAIN: Statement = {
  status: 'Unknown',
  reason: ProvisionedReason.Creating,
  message: 'Trying again to make the instance',
};

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
