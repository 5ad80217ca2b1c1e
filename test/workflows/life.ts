import type { Provider } from '../../activities/providers/contract.ts';
import { conditionOf, withCondition } from '../../model/condition.ts';
import { type Instance, type InstanceRef, type InstanceRequest, ProviderError } from '../../model/instance.ts';
import type { Failure, Look, ObservedManaged, ObservedProvider, Report, Timing } from '../../model/observation.ts';
import { type Placement, type ProxyStatus, placedIn } from '../../model/proxy.ts';
import { instanceName } from '../../model/spec-hash.ts';
import { afterCreate, afterDelete, afterStaleCreate, decide, needsLook } from '../../workflows/decide.ts';
import { BLANK_MEMORY, type Decision, type Memory, type World } from '../../workflows/decision.ts';
import { afterFailure, mayHaveInstance } from '../../workflows/failures.ts';

const MINUTE = 60_000;
/** As in workflows/calls.ts. */
const QUICK_ATTEMPTS = 3;
/** As in workflows/proxy.ts. */
const BUSY_PASSES = 20;

export const TIMING: Timing = {
  provisioningPoll: 5_000,
  deletionPoll: 5_000,
  provisioningTimeout: 15 * MINUTE,
  quotaRetry: 5 * MINUTE,
  backoffInitial: 1_000,
  backoffMax: 5 * MINUTE,
  resync: 360 * MINUTE,
};

/** The clock of a life and of the provider that it meets. Milliseconds since the epoch. */
export interface Clock {
  now: number;
}

export interface LifeOptions {
  provider: Provider;
  clock: Clock;
  uid?: string;
  placement?: Placement;
  /** As the configuration has it: whether there are zones. */
  zonal?: { defaultZone?: string };
}

/** One Proxy and its workflow, without servers: the loop of workflows/proxy.ts and its activities, over a provider. */
export class Life {
  readonly uid: string;
  readonly name: string;
  /** What each report said of `Provisioned`, after the minute it was made in. */
  readonly said: string[] = [];
  /** What each pass saw and did. */
  readonly story: string[] = [];
  /** What must not happen and did. */
  readonly violations: string[] = [];

  placement: Placement;
  hash = 'h0';
  generation = 1;
  exists = true;
  deleting = false;
  finalizer = false;
  status: ProxyStatus = {};
  recordedHash: string | undefined;
  /** A person asked for another instance. */
  replace = false;
  /** The Secret of its cloud-init is there. */
  secret = true;
  configured = true;
  /** An edit that comes between the decision to create and this attempt at it. */
  overtaking: { attempt: number; edit: () => void } | undefined;
  /** The next report is lost with the workflow: with nothing of it written, or the hash annotation alone. */
  loss: { annotated: boolean } | undefined;
  /** Until the next pass, in milliseconds. */
  wait = 0;

  private memory: Memory = BLANK_MEMORY;
  private readonly provider: Provider;
  private readonly clock: Clock;
  private readonly zonal: LifeOptions['zonal'];
  private readonly born: number;

  constructor({ provider, clock, uid = 'a', placement = {}, zonal }: LifeOptions) {
    this.provider = provider;
    this.clock = clock;
    this.uid = uid;
    this.name = instanceName(uid);
    this.placement = placement;
    this.zonal = zonal;
    this.born = clock.now;
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

  remove(): void {
    this.deleting = true;
    if (!this.finalizer) this.exists = false;
  }

  /** Temporal loses it: the next pass is a new workflow's first. */
  forget(): void {
    this.memory = BLANK_MEMORY;
    this.replace = false;
  }

  /** Passes until the workflow waits for something; a nudge is a call of this before that wait is over. */
  async nudge(): Promise<void> {
    for (let passes = 1; this.exists && (await this.pass()); passes += 1) {
      if (passes < BUSY_PASSES) continue;
      this.violations.push(`${BUSY_PASSES} passes in a row without a wait`);
      break;
    }
  }

  /** Lets the wait that the last pass chose go by, and the next passes come. */
  async go(waits = 1): Promise<void> {
    for (let waited = 0; waited < waits && this.exists; waited += 1) {
      this.clock.now += this.wait;
      await this.nudge();
    }
  }

  /** True when the next pass is due at once. */
  private async pass(): Promise<boolean> {
    const memory = { ...this.memory, replace: this.memory.replace || this.replace };
    this.replace = false;
    const proxy = this.observe();
    const world: World<ObservedManaged> = { proxy, memory, timing: TIMING, now: this.clock.now, random: 0.5 };
    if (needsLook(world)) world.look = await this.look();
    const decided = decide(world);
    const decision = await this.carryOut(decided, { ...world, memory: decided.memory });
    const { report, next } = decision;
    this.story.push(
      `  look ${JSON.stringify(world.look)} → ${decided.action ?? 'no action'}, ${JSON.stringify(next)} ${report?.provisioned?.reason ?? ''}`,
    );
    this.memory = decision.memory;
    if (report && this.loss) return this.loseReport(report, this.loss.annotated);
    if (report) this.publish(report);
    if (next === 'finish') {
      if (this.exists && this.finalizer) this.violations.push('the workflow ended while its finalizer was on the CR');
      return false;
    }
    this.wait = next === 'now' ? 0 : next.after;
    return next === 'now';
  }

  private observe(): ObservedManaged {
    const provider: ObservedProvider = this.configured
      ? { name: 'p', configured: true, taskQueue: 'q', ...(this.zonal && { zonal: this.zonal }) }
      : { name: 'p', configured: false, known: [] };
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
      provider,
      ...(this.recordedHash !== undefined && { recordedHash: this.recordedHash }),
      desired: this.secret ? { hash: this.hash } : { cloudInitError: 'no Secret' },
    };
  }

  private ref(): InstanceRef {
    const { providerID } = this.status;
    return {
      name: this.name,
      uid: this.uid,
      placement: placedIn(this.placement, this.status),
      ...(providerID && { providerID }),
      ...(!this.deleting && this.secret && { specHash: this.hash }),
    };
  }

  private async look(): Promise<Look> {
    const ref = this.ref();
    const result = await quickly(() => this.provider.get(ref, soon()));
    if ('answer' in result) return { found: { ...result.answer } };
    return result.failure === 'NotFound' ? { absent: true } : { failed: result.failure };
  }

  private async carryOut(decision: Decision, world: World<ObservedManaged>): Promise<Decision> {
    const { action } = decision;
    switch (action) {
      case 'addFinalizer':
        if (!this.deleting) this.finalizer = true;
        return decision;
      case 'removeFinalizer':
        this.finalizer = false;
        this.exists = false;
        return decision;
      case 'create': {
        const result = await this.create(world);
        if ('answer' in result)
          return result.answer ? afterCreate(world, { ...result.answer }) : afterStaleCreate(world);
        if (result.failure === 'NotFound') throw new Error('a create is never NotFound');
        return afterFailure(world, result.failure, action);
      }
      case 'delete': {
        this.justify(world);
        const ref = this.ref();
        const result = await quickly(() => this.provider.delete(ref, soon()));
        if ('answer' in result) return afterDelete(decision, result.answer);
        if (result.failure === 'NotFound') throw new Error('a delete is never NotFound');
        return afterFailure(world, result.failure, action);
      }
      default:
        return decision;
    }
  }

  /** As activities/instances.ts makes it: undefined when the world is no longer the one that was decided on. */
  private create({ proxy, memory }: World<ObservedManaged>): Promise<Result<Instance | undefined>> {
    const { hash } = this;
    const { zone } = proxy.status;
    return quickly(async (attempt) => {
      if (this.overtaking?.attempt === attempt) this.overtaking.edit();
      if (!this.finalizer || this.deleting || this.hash !== hash || this.status.zone !== zone) return undefined;
      const request: InstanceRequest = {
        name: this.name,
        uid: this.uid,
        namespace: 'default',
        proxyName: this.uid,
        placement: placedIn(this.placement, this.status),
        port: 3128,
        specHash: hash,
        mayExist: mayHaveInstance(proxy, memory) || attempt > 1,
      };
      return this.provider.create(request, soon());
    });
  }

  /** A machine that runs as it was wanted may only be deleted with its CR, or because a person asked for it. */
  private justify({ proxy, memory, look }: World<ObservedManaged>): void {
    if (proxy.deleting || memory.replace || !look || !('found' in look)) return;
    const { state, specHash } = look.found;
    if (state === 'Running' && proxy.recordedHash === this.hash && specHash === this.hash) {
      this.violations.push('a running instance of the right making was deleted');
    }
  }

  private loseReport(report: Report, annotated: boolean): true {
    if (annotated && report.hash !== undefined) this.recordedHash = report.hash;
    this.loss = undefined;
    this.forget();
    return true;
  }

  private publish(report: Report): void {
    if (report.hash !== undefined) this.recordedHash = report.hash;
    const { provisioned, healthy, generation } = report;
    const { now } = this.clock;
    let { conditions } = this.status;
    if (provisioned) {
      conditions = withCondition(conditions, 'Provisioned', provisioned, generation, now);
      this.said.push(`${Math.floor((now - this.born) / 6_000) / 10} ${provisioned.reason}`);
    }
    if (healthy) conditions = withCondition(conditions, 'Healthy', healthy, generation, now);
    const next: Record<string, unknown> = { ...this.status, ...(conditions && { conditions }) };
    next.observedGeneration = generation;
    for (const member of ['providerID', 'zone', 'ip', 'port', 'incarnation'] as const) {
      if (report[member] === null) delete next[member];
      else if (report[member] !== undefined) next[member] = report[member];
    }
    this.status = next as ProxyStatus;
    if (conditionOf(conditions, 'Provisioned')?.status === 'True' && !this.status.providerID) {
      this.violations.push('the status says Provisioned of no instance');
    }
  }
}

type Result<T> = { answer: T } | { failure: Failure | 'NotFound' };

const soon = () => AbortSignal.timeout(20_000);

/** A provider call as its activity makes it: what nobody knows the cause of is quickly tried again. */
async function quickly<T>(call: (attempt: number) => Promise<T>): Promise<Result<T>> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return { answer: await call(attempt) };
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      const { class: kind, message, retryAfterMillis, zoneExhausted } = error;
      if (kind === 'NotFound') return { failure: kind };
      if (kind === 'Transient' && attempt < QUICK_ATTEMPTS) continue;
      const failure: Failure = { class: kind, message, attempt };
      if (retryAfterMillis !== undefined) failure.retryAfterMillis = retryAfterMillis;
      return { failure: zoneExhausted ? { ...failure, zoneExhausted } : failure };
    }
  }
}
