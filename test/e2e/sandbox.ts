import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { projectRoot } from '../../deploy/sandbox/paths.ts';
import { processesThatMention } from './processes.ts';

const START_MILLIS = 90_000;
const STOP_MILLIS = 60_000;

/** What `.sandbox/env` promises. */
export type SandboxSettings = Record<
  | 'KUBECONFIG'
  | 'TEMPORAL_ADDRESS'
  | 'LEASE_API'
  | 'METRICS'
  | 'PROBE_TARGET_HTTP'
  | 'PROBE_TARGET_HTTPS'
  | 'PROBE_TARGET_CA'
  | 'ORCHESTRATOR_PID',
  string
> & { DISCOVERY_TOKEN?: string; POD_PROBE_TARGET?: string };

/** `npm start`, running. */
export interface Sandbox {
  readonly dir: string;
  /** Where the `host` provider keeps its instances. */
  readonly hostState: string;
  /** Read anew each time: the orchestrator's pid changes. */
  settings(): SandboxSettings;
  /** All that it has printed. */
  output(): string;
  /** Ctrl-C. Rejects unless it ends with code 0 and leaves no process. */
  stop(): Promise<void>;
}

export const newSandboxFolder = (suite: string): string => mkdtempSync(join(tmpdir(), `e2e-${suite}-`));

/** For the end of a suite, after `stop`. */
export const removeSandboxFolder = (dir: string): void => rmSync(dir, { recursive: true, force: true });

export interface SandboxOptions {
  /** Added to the environment, and so to the orchestrator's. */
  env?: Record<string, string>;
  args?: string[];
  /** Which program runs; by default the one of `npm start`. */
  script?: 'deploy/sandbox/start.ts' | 'test/e2e/sandbox-without-orchestrator.ts';
}

/** Runs what `npm start` runs, on the state in `dir`, and waits for the line `ready`. */
export async function startSandbox(
  dir: string,
  { env = {}, args = [], script = 'deploy/sandbox/start.ts' }: SandboxOptions = {},
): Promise<Sandbox> {
  const child = spawn(process.execPath, [script, ...args], {
    cwd: projectRoot,
    env: { ...environmentWithoutVitest(), ...env, SANDBOX_DIR: dir },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = collectOutput(child);
  const stop = async () => {
    const code = await interrupt(child);
    const left = processesThatMention(dir);
    if (code !== 0 || left.length > 0)
      throw new Error(`${script} ended with ${code} and left [${left.join(', ')}]. It said:\n${output()}`);
  };
  try {
    await saysReady(child, output);
  } catch (error) {
    await interrupt(child);
    throw error;
  }
  return {
    dir,
    hostState: join(dir, 'host'),
    settings: () => parseEnv(readFileSync(join(dir, 'env'), 'utf8')) as SandboxSettings,
    output,
    stop,
  };
}

/** What vitest sets for its own processes must not change how the product behaves. */
export function environmentWithoutVitest(): NodeJS.ProcessEnv {
  const ofVitest = /^(VITEST|NODE_ENV$|NODE_OPTIONS$|TEST$|DEV$|PROD$|MODE$|SSR$|BASE_URL$)/;
  return Object.fromEntries(Object.entries(process.env).filter(([key]) => !ofVitest.test(key)));
}

/** All that it prints, up to now. */
export function collectOutput(child: ChildProcess): () => string {
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  return () => text;
}

async function saysReady(child: ChildProcess, output: () => string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const fail = (what: string) => reject(new Error(`npm start ${what}. It said:\n${output()}`));
  const look = () => output().split('\n').includes('ready') && resolve();
  const late = setTimeout(() => fail(`was not ready within ${START_MILLIS / 1000} s`), START_MILLIS);
  child.stdout?.on('data', look);
  child.once('exit', (code) => fail(`ended with ${code} before it was ready`));
  child.once('error', (error) => fail(`could not be run: ${error.message}`));
  try {
    await promise;
  } finally {
    clearTimeout(late);
    child.stdout?.off('data', look);
  }
}

/** Ctrl-C, and the exit code. Again after a minute, which it takes as a wish to hurry. */
async function interrupt(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const again = setTimeout(() => child.kill('SIGINT'), STOP_MILLIS);
  child.kill('SIGINT');
  await once(child, 'exit');
  clearTimeout(again);
  return child.exitCode;
}
