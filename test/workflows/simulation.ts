import { conditionOf, withCondition } from '../../model/condition.ts';
import type { Instance, InstanceState } from '../../model/instance.ts';
import type { Failure, Look, ObservedManaged, Report, Timing } from '../../model/observation.ts';
import { phaseOf } from '../../model/phase.ts';
import type { ProxyStatus } from '../../model/proxy.ts';
import { afterCreate, afterDelete, decide, needsLook } from '../../workflows/decide.ts';
import { type Action, BLANK_MEMORY, type Decision, type Memory, type World } from '../../workflows/decision.ts';
import { afterFailure } from '../../workflows/failures.ts';

const MINUTE = 60_000;
/** As in workflows/calls.ts. */
const QUICK_ATTEMPTS = 3;
const TIMING: Timing = {
  provisioningPoll: 5_000,
  deletionPoll: 5_000,
  provisioningTimeout: 15 * MINUTE,
  quotaRetry: 5 * MINUTE,
  backoffInitial: 1_000,
  backoffMax: 5 * MINUTE,
  resync: 360 * MINUTE,
};

/** `lost`: the call does its work, and its answer never arrives. */
export type CallFault = Failure['class'] | 'lost';

export type Call = 'create' | 'get' | 'delete';

/** Something that happens to the world between two passes, or that the next calls will meet. */
export type Happening =
  | { what: 'edit'; hash: string }
  | { what: 'touch' }
  | { what: 'delete' }
  | { what: 'replace' }
  | { what: 'secret'; present: boolean }
  | { what: 'configured'; configured: boolean }
  | { what: 'vanish' }
  | { what: 'state'; state: InstanceState }
  | { what: 'readdress' }
  | { what: 'boots'; state: InstanceState }
  | { what: 'lingers'; polls: number }
  /** The next calls of this kind go wrong, one fault each. */
  | { what: 'faults'; call: Call; faults: CallFault[] }
  | { what: 'annotation removed' }
  /** Temporal forgets it in the middle of its next report: with nothing written, or the hash annotation alone. */
  | { what: 'workflow lost before report'; annotated: boolean }
  /** Temporal forgets the workflow: the next pass is a new one's first. */
  | { what: 'workflow lost' }
  | { what: 'wait' }
  | { what: 'wait long' };

/** One CR, one provider and one workflow, without servers: the loop of workflows/proxy.ts over a world in memory. */
export class Simulation {
  readonly violations: string[] = [];
  readonly timeline: string[] = [];
  crExists = true;
  instance: (Instance & { leaving: number }) | undefined;
  made = 0;

  private hash = 'h0';
  private generation = 1;
  private deleting = false;
  private finalizer = false;
  private recordedHash: string | undefined;
  private status: ProxyStatus = {};
  private secret = true;
  private configured = true;
  private boots: InstanceState = 'Running';
  private lingers = 0;
  private faults: Record<Call, CallFault[]> = { create: [], get: [], delete: [] };
  private loss: { annotated: boolean } | undefined;
  private memory: Memory = BLANK_MEMORY;
  private replaceAsked = false;
  private now = Date.parse('2026-01-01T00:00:00Z');
  private wait = 0;

  get wanted(): { hash: string; deleting: boolean; secret: boolean; configured: boolean } {
    return { hash: this.hash, deleting: this.deleting, secret: this.secret, configured: this.configured };
  }

  get said(): { phase: string; recordedHash: string | undefined; status: ProxyStatus; finalizer: boolean } {
    const phase = phaseOf(this.status.conditions, this.deleting);
    return { phase, recordedHash: this.recordedHash, status: this.status, finalizer: this.finalizer };
  }

  happen(happening: Happening): void {
    this.timeline.push(JSON.stringify(happening));
    const { instance } = this;
    switch (happening.what) {
      case 'edit':
        if (happening.hash !== this.hash) this.generation += 1;
        this.hash = happening.hash;
        break;
      case 'touch':
        this.generation += 1;
        break;
      case 'delete':
        this.deleting = true;
        if (!this.finalizer) this.crExists = false;
        break;
      case 'replace':
        this.replaceAsked = true;
        break;
      case 'secret':
        this.secret = happening.present;
        break;
      case 'configured':
        this.configured = happening.configured;
        break;
      case 'vanish':
        this.instance = undefined;
        break;
      case 'state':
        if (instance) instance.state = happening.state;
        break;
      case 'readdress':
        if (instance) instance.ip = `10.1.0.${this.made}`;
        break;
      case 'boots':
        this.boots = happening.state;
        break;
      case 'lingers':
        this.lingers = happening.polls;
        break;
      case 'faults':
        this.faults[happening.call].push(...happening.faults);
        break;
      case 'annotation removed':
        this.recordedHash = undefined;
        break;
      case 'workflow lost before report':
        this.loss = { annotated: happening.annotated };
        break;
      case 'workflow lost':
        this.memory = BLANK_MEMORY;
        this.replaceAsked = false;
        break;
      case 'wait':
        this.now += this.wait;
        break;
      case 'wait long':
        this.now += 20 * MINUTE;
        break;
    }
  }

  /** All is well from here on: what is left is to converge. */
  heal(): void {
    this.faults = { create: [], get: [], delete: [] };
    this.loss = undefined;
    this.secret = true;
    this.configured = true;
    this.boots = 'Running';
    this.lingers = 0;
    if (this.instance?.state === 'Provisioning') this.instance.state = 'Running';
    // What a permanent error waits for.
    this.generation += 1;
  }

  /** Passes until the workflow waits; then time moves on to the end of that wait, `waits` times. */
  run(waits: number): void {
    for (let waited = 0; this.crExists && waited <= waits; waited += 1) {
      let passes = 0;
      while (this.crExists && this.pass()) {
        passes += 1;
        if (passes > 10) {
          this.violations.push('more than 10 passes in a row without a wait');
          break;
        }
      }
      if (waited < waits) this.now += this.wait;
    }
  }

  /** One pass; true when the next one is due at once. */
  private pass(): boolean {
    const proxy = this.observe();
    const memory = { ...this.memory, replace: this.memory.replace || this.replaceAsked };
    this.replaceAsked = false;
    const world: World<ObservedManaged> = { proxy, memory, timing: TIMING, now: this.now, random: 0.5 };
    if (needsLook(world)) world.look = this.look();
    const first = decide(world);
    const decision = first.action ? this.act(first, first.action, world) : first;
    this.timeline.push(
      `  pass: look ${JSON.stringify(world.look)} → ${first.action ?? 'no action'}, ${JSON.stringify(decision.next)}`,
    );
    this.memory = decision.memory;
    if (decision.report && this.loss) {
      if (this.loss.annotated && decision.report.hash !== undefined) this.recordedHash = decision.report.hash;
      this.loss = undefined;
      this.memory = BLANK_MEMORY;
      return true;
    }
    if (decision.report) this.publish(decision.report);
    if (decision.next === 'finish') {
      if (this.crExists && this.finalizer) this.violations.push('the workflow ended while its finalizer was on the CR');
      return false;
    }
    this.wait = decision.next === 'now' ? 0 : decision.next.after;
    return decision.next === 'now';
  }

  private observe(): ObservedManaged {
    return {
      mode: 'Managed',
      generation: this.generation,
      deleting: this.deleting,
      finalizer: this.finalizer,
      port: 3128,
      status: this.status,
      instanceName: 'proxy-a',
      abandon: false,
      placement: {},
      provider: this.configured
        ? { name: 'p', configured: true, taskQueue: 'q' }
        : { name: 'p', configured: false, known: [] },
      ...(this.recordedHash !== undefined && { recordedHash: this.recordedHash }),
      desired: this.secret ? { hash: this.hash } : { cloudInitError: 'no Secret' },
    };
  }

  /** A provider call as an activity makes it: what is not an answer is quickly tried again. */
  private call<T>(call: Call, work: () => T): { answer: T } | { failure: Failure } {
    for (let attempt = 1; ; attempt += 1) {
      const result = this.attempt(call, work, attempt);
      if ('answer' in result || result.failure.class !== 'Transient' || attempt === QUICK_ATTEMPTS) return result;
    }
  }

  /** The call's work, unless the next fault forbids it; `lost` does it and loses the answer. */
  private attempt<T>(call: Call, work: () => T, attempt: number): { answer: T } | { failure: Failure } {
    const fault = this.faults[call].shift();
    if (fault && fault !== 'lost') return { failure: { class: fault, message: `the provider says ${fault}`, attempt } };
    const answer = work();
    return fault ? { failure: { class: 'Transient', message: 'the answer was lost', attempt } } : { answer };
  }

  private look(): Look {
    const result = this.call('get', () => this.instance);
    if ('failure' in result) return { failed: result.failure };
    return result.answer ? { found: { ...result.answer } } : { absent: true };
  }

  private act(decision: Decision, action: Action, world: World<ObservedManaged>): Decision {
    switch (action) {
      case 'addFinalizer':
        if (!this.deleting) this.finalizer = true;
        return decision;
      case 'removeFinalizer':
        if (this.instance) this.violations.push('the finalizer was removed while the instance was there');
        this.finalizer = false;
        this.crExists = false;
        return decision;
      case 'create': {
        const result = this.call('create', () => this.create());
        return 'failure' in result
          ? afterFailure(world, result.failure, action)
          : afterCreate(world, { ...result.answer });
      }
      case 'delete': {
        this.justify(world);
        const result = this.call('delete', () => this.delete());
        return 'failure' in result ? afterFailure(world, result.failure, action) : afterDelete(decision, result.answer);
      }
    }
  }

  private create(): Instance {
    if (!this.finalizer) this.violations.push('an instance was made before the finalizer was there');
    if (this.deleting) this.violations.push('an instance was made for a CR that is being deleted');
    if (this.instance) return this.instance;
    this.made += 1;
    this.instance = {
      name: 'proxy-a',
      providerID: `p://proxy-a`,
      uid: 'uid',
      state: this.boots,
      ip: `10.0.0.${this.made}`,
      createdAt: new Date(this.now).toISOString(),
      specHash: this.hash,
      leaving: this.lingers,
    };
    return this.instance;
  }

  private delete(): 'gone' | 'deleting' {
    if (this.instance && this.instance.leaving > 0) {
      this.instance.leaving -= 1;
      this.instance.state = 'Stopped';
      return 'deleting';
    }
    this.instance = undefined;
    return 'gone';
  }

  /** A machine that runs as it was wanted may only be deleted with its CR, or because a person asked for it. */
  private justify({ proxy, memory, look }: World<ObservedManaged>): void {
    const { instance } = this;
    if (instance?.state !== 'Running' || proxy.deleting || memory.replace) return;
    const seen = look && 'found' in look ? look.found.state : undefined;
    if (seen === 'Running' && proxy.recordedHash === this.hash && instance.specHash === this.hash) {
      this.violations.push('a running instance of the right making was deleted');
    }
  }

  private publish(report: Report): void {
    if (report.hash !== undefined) this.recordedHash = report.hash;
    const { provisioned, healthy, generation } = report;
    let { conditions } = this.status;
    if (provisioned) conditions = withCondition(conditions, 'Provisioned', provisioned, generation, this.now);
    if (healthy) conditions = withCondition(conditions, 'Healthy', healthy, generation, this.now);
    const members = ['providerID', 'ip', 'port', 'incarnation'] as const;
    const next: Record<string, unknown> = {
      ...this.status,
      observedGeneration: generation,
      ...(conditions && { conditions }),
    };
    for (const member of members) {
      if (report[member] === null) delete next[member];
      else if (report[member] !== undefined) next[member] = report[member];
    }
    this.status = next as ProxyStatus;
    if (conditionOf(conditions, 'Provisioned')?.status === 'True' && !this.status.providerID) {
      this.violations.push('the status says Provisioned of no instance');
    }
  }
}
