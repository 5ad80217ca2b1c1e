import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { settleAddresses } from './addresses.ts';
import { allOrNothing, allSettled } from './all-or-nothing.ts';
import { applyCrds } from './crds.ts';
import { writeEnvFile } from './env-file.ts';
import { SandboxError } from './failure.ts';
import { endKilledRun } from './leftovers.ts';
import { tryLock } from './lock.ts';
import { boundLogs, rotateLog } from './log-files.ts';
import { nodeLayout } from './node/layout.ts';
import { nodePartNames } from './node/plan-node.ts';
import { removeNode } from './node/remove-node.ts';
import { type OrchestratorCommand, orchestratorName } from './orchestrator.ts';
import type { NodeParts, Parts } from './parts.ts';
import type { SandboxPaths } from './paths.ts';
import {
  describeSandbox,
  type PlannedPart,
  planSandbox,
  type SandboxPlan,
  type SandboxSettings,
  stopOrder,
} from './plan.ts';
import { createPortPicker, type PortPicker } from './ports.ts';
import { elapsed, type Progress } from './progress.ts';
import { hostStateFolders, writeProvidersFile } from './providers-file.ts';
import { rememberSquidFolders, stopSquids } from './squids.ts';
import { type Supervised, supervise } from './supervisor.ts';

export interface SandboxOptions {
  paths: SandboxPaths;
  /** Obtains the executables; called once the state folder is ours. */
  parts: (signal: AbortSignal) => Promise<Parts>;
  /** With it, there is a node for pods; obtains what that needs. */
  node?: ((signal: AbortSignal) => Promise<NodeParts>) | undefined;
  orchestrator: OrchestratorCommand;
  /** Used instead of the generated providers file; absolute. */
  providersConfig?: string | undefined;
  /** Bearer token of the lease API. */
  discoveryToken?: string | undefined;
  progress: Progress;
  /** Aborts the start; everything that is up by then is stopped before the promise rejects. */
  signal: AbortSignal;
  /** Aborts every grace period, now and when stopping. */
  hurry: AbortSignal;
}

export interface Sandbox {
  /** What `.sandbox/env` says. */
  settings: SandboxSettings;
  /** Stops everything in order and lets go of the state folder. */
  stop(): Promise<void>;
}

/** Brings the whole sandbox up, or leaves nothing running and rejects with what to tell the person. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { paths, progress } = options;
  const lock = tryLock(paths.lock);
  if ('holder' in lock) {
    const { pid } = lock.holder;
    throw new SandboxError(`A sandbox already runs on ${paths.dir}: process ${pid}. Stop it with: kill ${pid}`);
  }
  // Last in, first out; each is done whatever becomes of the others, and all that failed is thrown, after why we stop.
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => lock.release());
  const picker = createPortPicker();
  const up: Supervised[] = [];
  const squidsOf = stateFolders(options);
  let settings: SandboxSettings | undefined;
  // A pid that is no longer ours must not stay where scripts read it.
  cleanup.defer(() => settings && writeEnvFile(paths.envFile, { ...settings, ORCHESTRATOR_PID: undefined }));
  cleanup.defer(() => picker.release());
  cleanup.defer(boundLogs(() => logFiles(paths)));
  deferStops(cleanup, up, squidsOf, options);
  const left = await endKilledRun(paths, { hurry: options.hurry });
  if (left.length > 0) progress.line(`stopped what a killed run had left: ${left.join(', ')}`);
  for (const file of logFiles(paths)) rotateLog(file);
  rememberSquidFolders(paths, squidsOf);
  const parts = await options.parts(options.signal);
  const node = options.node && { layout: nodeLayout(paths), parts: await options.node(options.signal) };
  const addresses = await settleAddresses(paths, picker);
  const known: SandboxSettings = describeSandbox(options, addresses, node);
  settings = known;
  writeEnvFile(paths.envFile, known);
  writeProvidersFile(paths, addresses, node?.layout);
  const orchestratorStarted = (pid: number) => {
    known.ORCHESTRATOR_PID = String(pid);
    writeEnvFile(paths.envFile, known);
  };
  const plan = planSandbox(options, parts, node, addresses, orchestratorStarted);
  try {
    await startParts(options, plan, picker, up);
  } catch (error) {
    if (up.length > 0) progress.line('stopping what was started');
    throw error;
  }
  const running = cleanup.move();
  return { settings: known, stop: () => running.disposeAsync() };
}

/** Starts the parts, each as soon as what it needs is there; each is supervised from then on. */
async function startParts(
  options: SandboxOptions,
  plan: SandboxPlan,
  picker: PortPicker,
  up: Supervised[],
): Promise<void> {
  const { paths, progress } = options;
  const width = Math.max(14, ...plan.node.map(({ name }) => name.length)) + 1;
  const bring = async ({ name, start, ports, where }: PlannedPart, signal: AbortSignal) => {
    const since = Date.now();
    const step = progress.step(name);
    try {
      await picker.release(...ports);
      up.push(supervise(await start(signal), start, progress.line));
      step.done(`${name.padEnd(width)}${elapsed(Date.now() - since).padStart(6)}  ${where}`);
    } catch (error) {
      step.failed();
      throw error;
    }
  };
  await allOrNothing(options.signal, [
    async (signal) => {
      await bring(plan.etcd, signal);
      await bring(plan.apiServer, signal);
      await applyCrds(paths.kubeconfig, { kubectl: plan.kubectl, signal });
      for (const part of plan.node) await bring(part, signal);
    },
    (signal) => bring(plan.temporal, signal),
    (signal) => bring(plan.probeTarget, signal),
  ]);
  await bring(plan.orchestrator, options.signal);
}

/** Has all that will be up by then stopped in `stopOrder`; so what comes last in there is deferred first. */
function deferStops(
  cleanup: AsyncDisposableStack,
  up: readonly Supervised[],
  squidsOf: string[],
  { paths, hurry }: SandboxOptions,
): void {
  for (const batch of stopOrder.toReversed()) {
    cleanup.defer(async () => {
      // Once it is gone, nobody starts them again.
      if (batch.includes(orchestratorName)) await stopSquids(squidsOf, hurry);
      // One whose start was given up is not among the parts.
      if (batch === nodePartNames) await removeNode(nodeLayout(paths));
    });
    cleanup.defer(async () => {
      await allSettled(up.filter(({ name }) => batch.includes(name)).map((part) => part.stop(hurry)));
    });
  }
}

/** Where Squids of ours may be: our own folder, and those that the person's providers file names. */
function stateFolders({ paths, providersConfig }: SandboxOptions): string[] {
  return [paths.hostState, ...(providersConfig ? hostStateFolders(providersConfig) : [])];
}

function logFiles(paths: SandboxPaths): string[] {
  try {
    return readdirSync(paths.logs)
      .filter((name) => name.endsWith('.log'))
      .map((name) => join(paths.logs, name));
  } catch {
    return [];
  }
}
