import { HealthyReason, type Statement } from '../model/condition.ts';
import type { Look, ObservedProxy, Report, Timing } from '../model/observation.ts';

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

export const NOT_PROBED: Statement = {
  status: 'Unknown',
  reason: HealthyReason.NotProbed,
  message: 'This instance has not been probed yet',
};

export const NO_INSTANCE = {
  providerID: null,
  zone: null,
  ip: null,
  port: null,
  latencyMillis: null,
  healthy: NOT_PROBED,
} as const;
export const UNREACHABLE = { ip: null, port: null, latencyMillis: null, healthy: NOT_PROBED } as const;

export const DELETION = 'deletion';

/** Nothing to do until something changes. */
export function settled(world: World, next?: Next): Decision {
  const idle: Next = { after: world.timing.resync, because: 'resync' };
  return { next: next ?? idle, memory: { ...world.memory, failures: 0, unconfigured: false } };
}

export function step(
  world: World,
  provisioned: Statement,
  after: number,
  because: string,
  memory: Memory = world.memory,
): Decision {
  return { report: { generation: world.proxy.generation, provisioned }, next: { after, because }, memory };
}

export function notProvisioned(reason: string, message: string): Statement {
  return { status: 'False', reason, message };
}

/** Exponential, between half and the whole of the nominal wait, so that a fleet's retries spread out. */
export function backoff({ timing, random }: World, attempt: number): number {
  const nominal = Math.min(timing.backoffMax, timing.backoffInitial * 2 ** Math.min(attempt - 1, 20));
  return Math.round(nominal * (0.5 + random / 2));
}
