import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { allSettled } from './all-or-nothing.ts';
import { SandboxError } from './failure.ts';
import { lastLines } from './log-files.ts';
import { identify, isRunning, type ProcessIdentity, stopProcess } from './process-identity.ts';
import { waitUntil } from './wait-until.ts';

/** Leftovers get as long as the slowest part, the orchestrator, gets in an ordinary stop. */
const leftoverGraceMs = 30_000;

export interface ChildSpec {
  /** Names the part in messages, and its record. */
  name: string;
  command: string;
  args: string[];
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** Standard output and error are appended here. */
  logFile: string;
  /** Folder for the record by which a later run finds this child, should we be killed. */
  recordDir?: string | undefined;
  /** True once the part serves. */
  ready(signal: AbortSignal): Promise<boolean>;
  /** Milliseconds until `ready`, default 60,000. */
  startTimeoutMs?: number;
  /** Milliseconds between SIGTERM and SIGKILL when it is stopped, default 10,000. */
  stopGraceMs?: number;
  /** Told the process's id as soon as there is one, before it is ready. */
  onSpawn?: ((pid: number) => void) | undefined;
  signal?: AbortSignal | undefined;
  /** Once it aborts, a start that is given up waits for no grace period. */
  hurry?: AbortSignal | undefined;
}

export interface Child {
  name: string;
  pid: number;
  logFile: string;
  /** Resolves with the exit code or the signal's name once it is gone. */
  exited: Promise<number | NodeJS.Signals>;
  kill(signal: NodeJS.Signals): void;
  /** SIGTERM, then SIGKILL after the grace period, or as soon as `hurry` aborts. Returns when it is gone. */
  stop(hurry?: AbortSignal): Promise<void>;
}

/** Starts a child in a session of its own and waits until it is ready; if it is not, it is gone again. */
export async function startChild(spec: ChildSpec): Promise<Child> {
  spec.signal?.throwIfAborted();
  const child = spawnChild(spec);
  const settled = new AbortController();
  const stops = [settled.signal, AbortSignal.timeout(spec.startTimeoutMs ?? 60_000)];
  if (spec.signal) stops.push(spec.signal);
  const stop = AbortSignal.any(stops);
  try {
    const exit = child.exited.then((how) => ({ how }));
    const outcome = await Promise.race([waitUntil((signal) => spec.ready(signal), stop), exit]);
    if (outcome) throw failedStart(spec, `ended (${outcome.how}) before it was ready`);
    return child;
  } catch (error) {
    await child.stop(spec.hurry);
    spec.signal?.throwIfAborted();
    if (error instanceof SandboxError) throw error;
    throw failedStart(spec, `was not ready within ${(spec.startTimeoutMs ?? 60_000) / 1000} s`);
  } finally {
    settled.abort();
  }
}

function spawnChild(spec: ChildSpec): Child {
  mkdirSync(dirname(spec.logFile), { recursive: true });
  const log = openSync(spec.logFile, 'a');
  // detached: Ctrl-C goes to the terminal's whole foreground group, and we want to stop the parts in our order.
  const stdio = ['ignore', log, log] as const;
  const child = spawn(spec.command, spec.args, { cwd: spec.cwd, env: spec.env, detached: true, stdio: [...stdio] });
  closeSync(log);
  const exited = new Promise<number | NodeJS.Signals>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'SIGKILL'));
  });
  exited.catch(() => undefined);
  const pid = child.pid;
  if (pid === undefined) throw new SandboxError(`${spec.name}: can't run ${spec.command}.`);
  const record = spec.recordDir && join(spec.recordDir, `${spec.name}.json`);
  try {
    if (record) writeRecord(record, pid);
    spec.onSpawn?.(pid);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  return {
    name: spec.name,
    pid,
    logFile: spec.logFile,
    exited,
    kill: (signal) => {
      child.kill(signal);
    },
    async stop(hurry) {
      child.kill('SIGTERM');
      const grace = AbortSignal.timeout(spec.stopGraceMs ?? 10_000);
      const patience = hurry ? AbortSignal.any([grace, hurry]) : grace;
      const enough = sleep(2 ** 30, undefined, { signal: patience, ref: false }).catch(() => 'enough' as const);
      if ((await Promise.race([exited, enough])) === 'enough') child.kill('SIGKILL');
      await exited;
      if (record) rmSync(record, { force: true });
    },
  };
}

/** Written before anything else happens: were we killed now, the next run would still find the child. */
function writeRecord(file: string, pid: number): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(identify(pid)));
}

function failedStart(spec: ChildSpec, what: string): SandboxError {
  const lines = lastLines(spec.logFile).map((line) => `  ${line}`);
  return new SandboxError(
    [`${spec.name} ${what}. Its last lines:`, ...lines, `The rest is in ${spec.logFile}`].join('\n'),
  );
}

/** Children of a run that was killed: recorded, and still the very same processes. */
export function findLeftovers(recordDir: string): { name: string; identity: ProcessIdentity; record: string }[] {
  return records(recordDir).filter(({ identity }) => isRunning(identity));
}

/**
 * Stops what a killed run left, one batch of names after the other; names in no batch go with the last. Returns what it
 * stopped; rejects, when it has been through all, if any of it does not end.
 */
export async function stopLeftovers(
  recordDir: string,
  batches: readonly string[][],
  patience: { hurry?: AbortSignal | undefined; killedMs?: number } = {},
): Promise<string[]> {
  const leftovers = findLeftovers(recordDir);
  const batchOf = (name: string) => {
    const index = batches.findIndex((names) => names.includes(name));
    return index === -1 ? batches.length - 1 : index;
  };
  const failures: unknown[] = [];
  for (const batch of batches.keys()) {
    const members = leftovers.filter(({ name }) => batchOf(name) === batch);
    const stops = members.map(({ identity }) => stopProcess(identity, { graceMs: leftoverGraceMs, ...patience }));
    await allSettled(stops).catch((error) => failures.push(error));
  }
  for (const { record, identity } of records(recordDir)) if (!isRunning(identity)) rmSync(record, { force: true });
  if (failures.length > 0) throw new AggregateError(failures);
  return leftovers.map(({ name, identity }) => `${name} (process ${identity.pid})`);
}

function records(recordDir: string): { name: string; identity: ProcessIdentity; record: string }[] {
  let names: string[];
  try {
    names = readdirSync(recordDir).filter((name) => name.endsWith('.json'));
  } catch {
    return [];
  }
  return names.flatMap((file) => {
    const record = join(recordDir, file);
    try {
      const identity = JSON.parse(readFileSync(record, 'utf8')) as ProcessIdentity;
      return [{ name: file.slice(0, -'.json'.length), identity, record }];
    } catch {
      return [{ name: file, identity: { pid: -1, startTicks: '', bootId: '', argv0: '' }, record }];
    }
  });
}
