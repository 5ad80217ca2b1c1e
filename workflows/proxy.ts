import { defineSearchAttributeKey } from '@temporalio/common';
import {
  ApplicationFailure,
  allHandlersFinished,
  condition,
  continueAsNew,
  defineSignal,
  defineUpdate,
  patched,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { HealthyReason } from '../model/condition.ts';
import type { Observation, ObservedManaged, ObservedProxy, Published, Report } from '../model/observation.ts';
import { type Phase, type ProxyRef, probeSubject } from '../model/proxy.ts';
import type { Verdict } from '../model/verdict.ts';
import { NUDGE, REPLACE, VERDICT } from '../model/workflow-names.ts';
import { createInstance, deleteInstance, failureOf, kubernetes, lookAt } from './calls.ts';
import { afterCreate, afterDelete, afterStaleCreate, decide, isSaid, needsLook } from './decide.ts';
import { BLANK_MEMORY, type Decision, type Memory, type Next, type Wait, type World } from './decision.ts';
import { describe } from './describe.ts';
import { afterFailure, mayHaveInstance } from './failures.ts';

/** Look at the world again. Without payload, so that lost, late, doubled and reordered ones are all harmless. */
export const nudgeSignal = defineSignal(NUDGE);
export const verdictSignal = defineSignal<[Verdict]>(VERDICT);
/** A person's wish for a new instance. Answers as soon as it is noted; the status of the Proxy tells the rest. */
export const replaceUpdate = defineUpdate<string, []>(REPLACE);

const PROXY_PHASE = defineSearchAttributeKey('ProxyPhase', 'KEYWORD');

/** Passes in a row without a wait, after which a fault of ours is likelier than a busy world. */
const BUSY_PASSES = 20;

/** What survives continue-as-new. */
export interface Carried {
  memory: Memory;
  /** Not yet written to the status. */
  verdict?: Verdict;
  /** What the status says since the last pass. */
  published?: Published;
  /** The phase that the search attribute tells. */
  searchable?: Phase;
  generation?: number;
  external?: boolean;
}

/**
 * The life of one Proxy: look, decide one step, do it, say so, wait. Ends when the CR is gone or needs us no more; the
 * result says which.
 */
export async function proxy(ref: ProxyRef, carried: Carried = { memory: BLANK_MEMORY }): Promise<string> {
  const state = { ...carried };
  let nudged = true;
  let replaceAsked = false;
  let busyPasses = 0;

  // Handlers only set flags, and all are there before the first await: nothing that arrives is ever missed.
  setHandler(nudgeSignal, () => {
    nudged = true;
  });
  setHandler(verdictSignal, (verdict) => {
    state.verdict = verdict;
  });
  setHandler(replaceUpdate, askForReplacement, { validator: refuseExternal });

  let wait: Wait | undefined;
  /** What the last step has seen after it: the next pass starts from it, unless a nudge says that there is more to see. */
  let seenAhead: Observation | undefined;
  /** What the last pass saw and said, for people. */
  let seen: { proxy: ObservedProxy; report: Report | undefined } | undefined;
  for (;;) {
    if (state.verdict) await publishVerdict(state.verdict);
    if (nudged || !wait) {
      const observed = nudged ? undefined : seenAhead;
      seenAhead = undefined;
      nudged = false;
      const next = await pass(observed);
      if (next === 'finish') return 'The Proxy is gone, and its instance with it';
      wait = next === 'now' ? undefined : next;
      busyPasses = next === 'now' ? busyPasses + 1 : 0;
      if (busyPasses >= BUSY_PASSES) wait = { after: 60_000, because: 'too many passes in a row' };
    }
    if (workflowInfo().continueAsNewSuggested) {
      await condition(allHandlersFinished);
      const memory = { ...state.memory, replace: state.memory.replace || replaceAsked };
      // The new run begins with a pass, which makes up for any wait or nudge that is dropped here.
      await continueAsNew<typeof proxy>(ref, { ...state, memory });
    }
    if (wait) {
      if (seen) setCurrentDetails(describe(seen.proxy, seen.report, state.published?.phase ?? 'Pending', wait));
      const started = Date.now();
      const summary = `Next look: ${wait.because}`;
      const woken = await condition(() => nudged || state.verdict !== undefined, wait.after, { summary });
      const left: number = wait.after - (Date.now() - started);
      // A verdict doesn't shorten a wait that is about something else.
      wait = woken && left > 0 ? { ...wait, after: left } : undefined;
    }
  }

  /** One pass of the level-triggered loop. */
  async function pass(observed?: Observation): Promise<Next> {
    const { proxy, timing } =
      observed ?? (await kubernetes.observe.executeWithOptions({ summary: 'Read the Proxy' }, [ref]));
    if (!proxy) return 'finish';
    state.generation = proxy.generation;
    state.external = proxy.mode === 'External';
    const memory = { ...state.memory, replace: state.memory.replace || replaceAsked };
    replaceAsked = false;
    const world: World = { proxy, memory, timing, now: Date.now(), random: Math.random() };
    if (proxy.mode === 'Managed' && needsLook(world)) world.look = await lookAt(ref, proxy);
    const { report, next, memory: after } = await carryOut(decide(world), world);
    state.memory = after;
    const { phase = 'Pending', ...status } = proxy.status;
    const subject = probeSubject(status);
    state.published = { phase, ...(subject !== undefined && { subject }) };
    // Of 2026-11-29. Before, the words of a report decided whether it was published: other words were another history.
    if (report && (patched('publish-every-report') || !isSaid(report, proxy))) await publish(report);
    seen = { proxy, report };
    return next;
  }

  async function carryOut(decision: Decision, world: World): Promise<Decision> {
    if (!decision.action || world.proxy.mode === 'External') return decision;
    const managed = { ...world, proxy: world.proxy, memory: decision.memory };
    switch (decision.action) {
      case 'addFinalizer':
        // Undefined in histories from when it saw nothing: then the next pass looks for itself.
        seenAhead = await kubernetes.addFinalizer.executeWithOptions(
          { summary: 'Claim the Proxy before anything is made' },
          [ref],
        );
        return decision;
      case 'removeFinalizer':
        await kubernetes.removeFinalizer.executeWithOptions({ summary: 'Let the Proxy go' }, [ref]);
        return decision;
      case 'create':
      case 'delete':
        try {
          return await change(decision, managed);
        } catch (error) {
          return afterFailure(managed, failureOf(error), decision.action);
        }
    }
  }

  async function change(decision: Decision, world: World<ObservedManaged>): Promise<Decision> {
    const { proxy: seen } = world;
    if (decision.action === 'delete') return afterDelete(decision, await deleteInstance(ref, seen));
    if ('cloudInitError' in seen.desired) return decision;
    const mayExist = mayHaveInstance(seen, world.memory);
    const instance = await createInstance(ref, seen, seen.desired.hash, mayExist);
    return instance ? afterCreate(world, instance) : afterStaleCreate(world);
  }

  async function publish(report: Report): Promise<void> {
    // What is written now was not there yet.
    seenAhead = undefined;
    const published = await kubernetes.publish.executeWithOptions({ summary: summaryOf(report) }, [ref, report]);
    if (!published) return;
    state.published = published;
    if (published.phase === state.searchable) return;
    upsertSearchAttributes([{ key: PROXY_PHASE, value: published.phase }]);
    state.searchable = published.phase;
  }

  async function publishVerdict(verdict: Verdict): Promise<void> {
    delete state.verdict;
    // A probe that was in flight when its instance was replaced says nothing about the new one.
    if (verdict.subject !== state.published?.subject || state.published.phase === 'Deleting') return;
    await publish(healthReport(verdict, state.generation ?? 0));
    // A proxy that fails its probes may well have lost its machine: sooner asked than swept.
    if (!verdict.healthy) nudged = true;
  }

  function askForReplacement(): string {
    replaceAsked = true;
    nudged = true;
    return 'Noted: the instance will be replaced. The status of the Proxy tells how it goes.';
  }

  function refuseExternal(): void {
    if (!state.external) return;
    throw ApplicationFailure.nonRetryable('An External proxy has no instance of ours to replace', 'ExternalProxy');
  }
}

function healthReport({ healthy, held, message, latencyMillis, checkedAt }: Verdict, generation: number): Report {
  const reason = healthy ? HealthyReason.ProbeSucceeded : HealthyReason.ProbeFailed;
  return {
    generation,
    healthy: {
      status: healthy ? 'True' : 'False',
      reason: held ? HealthyReason.TargetDown : reason,
      message,
    },
    ...(healthy && !held && { latencyMillis }),
    lastHealthCheckTime: checkedAt,
  };
}

function summaryOf({ provisioned, healthy, zone }: Report): string {
  const news = (provisioned ?? healthy)?.reason ?? (zone ? `zone ${zone}` : undefined);
  return news ? `Write status: ${news}` : 'Write status';
}
