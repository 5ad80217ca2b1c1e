import type { Provider } from '../../../activities/providers/contract.ts';
import { conditionOf, withCondition } from '../../../model/condition.ts';
import { type InstanceRef, ProviderError } from '../../../model/instance.ts';
import type { Failure, Look, ObservedManaged, Report, Timing } from '../../../model/observation.ts';
import type { Placement, ProxyStatus } from '../../../model/proxy.ts';
import { afterCreate, afterDelete, decide, needsLook } from '../../../workflows/decide.ts';
import { BLANK_MEMORY, type Decision, type Memory, type World } from '../../../workflows/decision.ts';
import { afterFailure } from '../../../workflows/failures.ts';
import { gcpRequest, PLACEMENT } from './gcp-world.ts';

const MINUTE = 60_000;

export const TIMING: Timing = {
  provisioningPoll: 5_000,
  deletionPoll: 5_000,
  provisioningTimeout: 15 * MINUTE,
  quotaRetry: 5 * MINUTE,
  backoffInitial: 1_000,
  backoffMax: 5 * MINUTE,
  resync: 360 * MINUTE,
};

/** The clock of a life and of the Compute Engine that it meets. */
export interface Clock {
  now: number;
}

/** One Proxy and its workflow, whose loop is that of workflows/proxy.ts, with a real provider beneath it. */
export class Life {
  /** What each report said of `Provisioned`, after the minute it was made in. */
  readonly said: string[] = [];
  placement: Placement = PLACEMENT;
  hash = 'h0';
  generation = 1;
  deleting = false;
  replace = false;
  finalizer = true;
  status: ProxyStatus = {};
  wait = 0;

  private recordedHash: string | undefined;
  private memory: Memory = { ...BLANK_MEMORY, create: 'none' };
  readonly uid: string;
  private readonly provider: Provider;
  private readonly clock: Clock;
  private readonly born: number;

  constructor(provider: Provider, clock: Clock, uid = 'a') {
    this.provider = provider;
    this.clock = clock;
    this.uid = uid;
    this.born = clock.now;
  }

  get name(): string {
    return gcpRequest(this.uid).name;
  }

  get reason(): string | undefined {
    return conditionOf(this.status.conditions, 'Provisioned')?.reason;
  }

  get message(): string | undefined {
    return conditionOf(this.status.conditions, 'Provisioned')?.message;
  }

  edit(hash: string, placement: Placement = this.placement): void {
    this.hash = hash;
    this.placement = placement;
    this.generation += 1;
  }

  /** Passes until the workflow waits for something; a nudge is a call of this before that wait is over. */
  async nudge(): Promise<void> {
    for (let passes = 0; this.finalizer && (await this.pass()); passes += 1) {
      if (passes > 10) throw new Error('more than 10 passes in a row without a wait');
    }
  }

  /** Lets the wait that the last pass chose go by, and the next passes come. */
  async go(waits = 1): Promise<void> {
    for (let waited = 0; waited < waits && this.finalizer; waited += 1) {
      this.clock.now += this.wait;
      await this.nudge();
    }
  }

  private async pass(): Promise<boolean> {
    const memory = { ...this.memory, replace: this.memory.replace || this.replace };
    this.replace = false;
    const proxy = this.observe();
    const world: World<ObservedManaged> = { proxy, memory, timing: TIMING, now: this.clock.now, random: 0.5 };
    if (needsLook(world)) world.look = await this.look();
    const { report, next, memory: after } = await this.carryOut(decide(world), world);
    this.memory = after;
    if (report) this.publish(report);
    this.wait = typeof next === 'object' ? next.after : 0;
    return next === 'now';
  }

  private observe(): ObservedManaged {
    return {
      mode: 'Managed',
      generation: this.generation,
      deleting: this.deleting,
      finalizer: this.finalizer,
      port: 3128,
      status: this.status,
      instanceName: this.name,
      abandon: false,
      placement: this.placement,
      provider: { name: 'gcp', configured: true, taskQueue: 'q' },
      ...(this.recordedHash !== undefined && { recordedHash: this.recordedHash }),
      desired: { hash: this.hash },
    };
  }

  /** As workflows/calls.ts makes it. */
  private ref(): InstanceRef {
    const { providerID } = this.status;
    return {
      name: this.name,
      uid: this.uid,
      placement: this.placement,
      ...(providerID && { providerID }),
      ...(!this.deleting && { specHash: this.hash }),
    };
  }

  private async look(): Promise<Look> {
    try {
      return { found: await this.provider.get(this.ref(), AbortSignal.timeout(20_000)) };
    } catch (error) {
      if (error instanceof ProviderError && error.class === 'NotFound') return { absent: true };
      return { failed: failureOf(error) };
    }
  }

  private async carryOut(decision: Decision, world: World<ObservedManaged>): Promise<Decision> {
    const signal = AbortSignal.timeout(20_000);
    const { placement, hash: specHash } = this;
    try {
      switch (decision.action) {
        case 'create': {
          const mayExist = world.memory.create === 'unknown';
          return afterCreate(
            world,
            await this.provider.create(gcpRequest(this.uid, { placement, specHash, mayExist }), signal),
          );
        }
        case 'delete':
          return afterDelete(decision, await this.provider.delete(this.ref(), signal));
        case 'removeFinalizer':
          this.finalizer = false;
          return decision;
        default:
          return decision;
      }
    } catch (error) {
      return afterFailure(world, failureOf(error), decision.action);
    }
  }

  private publish(report: Report): void {
    if (report.hash !== undefined) this.recordedHash = report.hash;
    const { provisioned, generation } = report;
    const next: Record<string, unknown> = { ...this.status };
    for (const member of ['providerID', 'ip', 'port', 'incarnation'] as const) {
      if (report[member] === null) delete next[member];
      else if (report[member] !== undefined) next[member] = report[member];
    }
    if (provisioned) {
      next.conditions = withCondition(this.status.conditions, 'Provisioned', provisioned, generation, this.clock.now);
      const minute = Math.floor((this.clock.now - this.born) / 6_000) / 10;
      this.said.push(`${minute} ${provisioned.reason}`);
    }
    this.status = next as ProxyStatus;
  }
}

function failureOf(error: unknown): Failure {
  if (!(error instanceof ProviderError) || error.class === 'NotFound') throw error;
  const { class: kind, message, retryAfterMillis } = error;
  return { class: kind, message, attempt: 1, ...(retryAfterMillis !== undefined && { retryAfterMillis }) };
}
