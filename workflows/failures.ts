import { conditionOf, ProvisionedReason, type Statement } from '../model/condition.ts';
import type { Failure, ObservedManaged } from '../model/observation.ts';
import { ABANDON_ANNOTATION } from '../model/proxy.ts';
import { type Action, backoff, type Decision, type Memory, notProvisioned, step, type World } from './decision.ts';
import { firstZone, tryElsewhere } from './zones.ts';

/** Errors after which it is certain that a create made nothing. */
const REFUSALS: readonly string[] = [ProvisionedReason.PermanentError, ProvisionedReason.QuotaExceeded];

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
  const elsewhere = isAboutZone(world, failure, memory, action) ? tryElsewhere(world, failure, memory) : undefined;
  if (elsewhere) return elsewhere;
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
    case 'QuotaExceeded': {
      // Where an earlier attempt may have made something, a look comes first, and soon.
      const wait =
        failure.zoneExhausted && action === 'create' && memory.create === 'unknown' ? pause : timing.quotaRetry;
      return step(world, say(ProvisionedReason.QuotaExceeded), wait, 'quota', memory);
    }
    case 'RateLimited':
      return step(world, say(ProvisionedReason.RateLimited), failure.retryAfterMillis ?? pause, 'rate limit', memory);
    case 'Transient':
      return step(world, say(ProvisionedReason.TransientError), pause, 'retry', memory);
  }
}

/** Whether nothing was made for a reason that may not hold in another zone. */
function isAboutZone({ proxy }: World<ObservedManaged>, failure: Failure, memory: Memory, action?: Action): boolean {
  const noneMade = action === 'create' ? memory.create === 'none' : action === undefined;
  if (failure.class === 'QuotaExceeded') return failure.zoneExhausted === true && noneMade;
  // One to fall back on may lack the machine type: no reason to give up the preferred one for good.
  const { zone } = proxy.status;
  return failure.class === 'Permanent' && action === 'create' && noneMade && zone !== firstZone(proxy);
}

export function unconfigured(proxy: ObservedManaged, { name, known }: { name: string; known: string[] }): Failure {
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

/** Failed like any permanent error, but looked at again by and by: no call is made meanwhile. */
export function withoutProvider(world: World<ObservedManaged>, failure: Failure): Decision {
  const { report, memory } = afterFailure(world, failure);
  const next = { after: backoff(world, memory.failures), because: 'the provider to be configured' };
  return { ...(report && { report }), next, memory: { ...memory, unconfigured: true } };
}

/** A passing trouble takes nothing from a proxy that runs: it is said, but the proxy stays provisioned. */
export function trouble(proxy: ObservedManaged, memory: Memory, reason: string, message: string): Statement {
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
export function latched({ status, generation }: ObservedManaged, memory: Memory): boolean {
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
export function refused({ status }: ObservedManaged): boolean {
  const provisioned = conditionOf(status.conditions, 'Provisioned');
  return provisioned?.status === 'False' && REFUSALS.includes(provisioned.reason);
}

const leaveBehind = ({ instanceName }: ObservedManaged): string =>
  `leave the instance behind: kubectl annotate proxy NAME ${ABANDON_ANNOTATION}=${instanceName}`;
