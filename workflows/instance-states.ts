import { conditionOf, ProvisionedReason, type Statement } from '../model/condition.ts';
import type { Instance } from '../model/instance.ts';
import type { ObservedManaged, Report } from '../model/observation.ts';
import {
  backoff,
  DELETION,
  type Decision,
  NO_INSTANCE,
  NOT_PROBED,
  notProvisioned,
  settled,
  step,
  UNREACHABLE,
  type World,
} from './decision.ts';
import { firstZone } from './zones.ts';

/** An instance that lived this long was not lost to a crash loop. */
const SETTLED_MILLIS = 10 * 60_000;

/** What an instance of the right making says about its proxy. */
export function represent(world: World<ObservedManaged>, instance: Instance): Decision {
  const { proxy, memory, timing, now } = world;
  const age = now - Date.parse(instance.createdAt);
  switch (instance.state) {
    case 'Running': {
      const moved = proxy.status.ip !== instance.ip || proxy.status.port !== proxy.port;
      const report: Report = {
        generation: proxy.generation,
        provisioned: {
          status: 'True',
          reason: ProvisionedReason.Created,
          message: `${instance.name} is running${because(instance)}`,
        },
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

/** The instance is gone: the next pass makes a new one under the same name. */
export function forget(world: World<ObservedManaged>, hash: string): Decision {
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
      zone: firstZone(proxy) ?? null,
    },
    next: 'now',
    memory: { ...memory, create: 'none', replace: false, failures: 0 },
  };
}

export function replace(world: World<ObservedManaged>, instance: Instance): Decision {
  const why = world.memory.replace ? 'a replacement was asked for' : 'its spec or cloud-init changed';
  const statement = notProvisioned(
    ProvisionedReason.Replacing,
    `Replacing ${instance.name}: ${why}${because(instance)}`,
  );
  return discard(world, statement, world.timing.deletionPoll, DELETION);
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

/** What the provider says of its state, for people. */
export const because = ({ reason }: Instance): string => (reason ? ` (${reason})` : '');
