// `npm start`: brings the sandbox and the orchestrator up in the foreground, and stops all of it on Ctrl-C.
import { statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { describeFailure, failuresIn, SandboxError } from './failure.ts';
import { requireNodeHost } from './node/requirements.ts';
import { nodeParts, obtainParts } from './parts.ts';
import { projectRoot, type SandboxPaths, sandboxPaths } from './paths.ts';
import type { SandboxSettings } from './plan.ts';
import { requireProc } from './process-identity.ts';
import { createProgress, elapsed, type Progress } from './progress.ts';
import { providerNames } from './providers-file.ts';
import { fittingSamples } from './sample.ts';
import { type Sandbox, startSandbox } from './session.ts';
import { onStopRequests } from './stop-requests.ts';

const help = `Usage: npm start [-- OPTIONS]

Brings up a sandbox on this machine's loopback addresses (etcd, a Kubernetes API server, Temporal with its UI, a
target for probes) and the orchestrator, prints "ready", and stops all of it on Ctrl-C. State is kept in .sandbox/:
the next start goes on with it, "npm run clean" removes it.

Options:
  --providers-config FILE  use this providers file instead of the generated one (.sandbox/providers.yaml)
  --node                   also a node that runs pods, and a provider "pods" of type kubernetes. Root on Linux only.
                           Some 4 minutes more the first time: builds kubelet and an image with Squid, and installs
                           what is missing of containerd, runc, CNI plugins, iproute2 and debootstrap with apt-get.
                           kubectl logs and exec do not work on it: its pods' logs are files
  --help                   print this

Environment:
  SANDBOX_DIR         state folder, instead of .sandbox
  DISCOVERY_TOKEN     bearer token that the lease API demands; empty or absent: it demands none
  KUBEBUILDER_ASSETS  folder with etcd, kube-apiserver and kubectl, looked into before PATH
  EGRESS_PROXY_CACHE  where downloaded and built parts are kept, instead of XDG_CACHE_HOME or ~/.cache`;

export interface StartArguments {
  help: boolean;
  /** With a node for pods. */
  node: boolean;
  /** Absolute. */
  providersConfig: string | undefined;
}

/** Throws a SandboxError with exit code 2 for what can't be meant. */
export function parseStartArguments(argv: string[], cwd: string): StartArguments {
  try {
    const options = {
      help: { type: 'boolean' },
      node: { type: 'boolean' },
      'providers-config': { type: 'string' },
    } as const;
    const { values } = parseArgs({ args: argv, options, allowPositionals: false });
    const file = values['providers-config'];
    const providersConfig = file === undefined ? undefined : existingFile(file, cwd);
    return { help: values.help === true, node: values.node === true, providersConfig };
  } catch (error) {
    if (error instanceof SandboxError) throw error;
    throw new SandboxError(`${(error as Error).message}\nSee: npm start -- --help`, { exitCode: 2 });
  }
}

function existingFile(file: string, cwd: string): string {
  const path = resolve(cwd, file);
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile()) return path;
  throw new SandboxError(`--providers-config: ${path} ${stats ? 'is not a file' : 'does not exist'}.`, { exitCode: 2 });
}

async function main(): Promise<number> {
  const began = Date.now();
  // npm changes to the project's root; paths that a person types mean their own directory.
  const args = parseStartArguments(process.argv.slice(2), process.env.INIT_CWD ?? process.cwd());
  if (args.help) {
    console.log(help);
    return 0;
  }
  // First, as it also says what to do instead.
  if (args.node) requireNodeHost();
  requireProc();
  const progress = createProgress();
  const stop = new AbortController();
  const hurry = new AbortController();
  onStopRequests({
    first: () => {
      progress.line('stopping; again to hurry');
      stop.abort(new Error('stopped'));
    },
    second: () => hurry.abort(),
  });
  let broken = false;
  // Whatever breaks in here, the children must not outlive us.
  process.on('uncaughtException', (error) => {
    progress.line(describeFailure(error));
    broken = true;
    stop.abort(error);
  });
  const paths = sandboxPaths();
  const start = () =>
    startSandbox({
      paths,
      parts: (signal) => obtainParts({ progress, signal }),
      node: args.node ? (signal) => obtainParts({ only: nodeParts, progress, signal }) : undefined,
      orchestrator: { command: process.execPath, args: ['worker/main.ts'] },
      providersConfig: args.providersConfig,
      discoveryToken: process.env.DISCOVERY_TOKEN || undefined,
      progress,
      signal: stop.signal,
      hurry: hurry.signal,
    });
  const ready = ({ settings }: Sandbox) => announce(settings, paths, args, progress, Date.now() - began);
  try {
    const code = await runUntilStopped({ start, ready, stop: stop.signal, say: progress.line });
    return broken ? 1 : code;
  } finally {
    progress.close();
  }
}

/**
 * Brings a sandbox up, and down again when `stop` aborts. Returns what to exit with; rejects with all that failed, among
 * which the wish to stop does not count.
 */
export async function runUntilStopped<Up extends Pick<Sandbox, 'stop'>>({
  start,
  ready,
  stop,
  say,
}: {
  start: () => Promise<Up>;
  ready: (sandbox: Up) => void;
  stop: AbortSignal;
  say: (text: string) => void;
}): Promise<number> {
  try {
    await using up = new AsyncDisposableStack();
    ready(up.adopt(await start(), (sandbox) => sandbox.stop()));
    await aborted(stop);
  } catch (error) {
    const failures = failuresIn(error).filter((failure) => failure !== stop.reason);
    if (failures.length > 0) throw new AggregateError(failures);
    say('stopped before it was ready');
    return 130;
  }
  say('stopped');
  return 0;
}

function announce(
  settings: SandboxSettings,
  paths: SandboxPaths,
  { node, providersConfig }: StartArguments,
  progress: Progress,
  tookMs: number,
): void {
  const shown = { ...settings, DISCOVERY_TOKEN: settings.DISCOVERY_TOKEN && 'in force, see .sandbox/env' };
  const kubeconfig = relative(process.env.INIT_CWD ?? projectRoot, settings.KUBECONFIG ?? '');
  progress.line(`everything is up after ${elapsed(tookMs)}`);
  progress.line('ready');
  for (const [key, value] of Object.entries(shown)) {
    if (value && key !== 'ORCHESTRATOR_PID') progress.line(`  ${key.padEnd(19)}${value}`);
  }
  progress.line(`\nTry, in another terminal (Ctrl-C here stops everything):`);
  progress.line(`  export KUBECONFIG=${kubeconfig.startsWith('..') ? settings.KUBECONFIG : kubeconfig}`);
  for (const sample of fittingSamples(paths, settings, providersConfig ?? paths.providers))
    progress.line(`  kubectl apply -f ${sample}`);
  progress.line(`  kubectl get proxies -w`);
  if (node && providersConfig && !providerNames(providersConfig).includes('pods'))
    progress.line(`\nFor proxies that are pods, ${providersConfig} lacks a provider like "pods" in ${paths.providers}`);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done();
    // An abort listener alone doesn't keep the process alive.
    const alive = setInterval(() => {}, 2 ** 30);
    signal.addEventListener('abort', () => {
      clearInterval(alive);
      done();
    });
  });
}

if (import.meta.main) {
  process.exitCode = await main().catch((error: unknown) => {
    console.error(describeFailure(error));
    const [first] = failuresIn(error);
    return first instanceof SandboxError ? first.exitCode : 1;
  });
}
