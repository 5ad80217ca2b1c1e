import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { projectRoot } from '../../deploy/sandbox/paths.ts';
import { collectOutput, environmentWithoutVitest, type Sandbox } from './sandbox.ts';

/** `node worker/main.ts`, as a test runs it. */
export interface Orchestrator {
  pid: number;
  /** Standard output and error. */
  output(): string;
  /** Rejects with its output when it ends before that. */
  ready(): Promise<void>;
  /** The exit code, or the signal that ended it. */
  exited: Promise<number | NodeJS.Signals>;
  kill(signal: NodeJS.Signals): void;
}

/** The environment that leads an orchestrator to the parts of a sandbox, listening on ports of its own. */
export async function orchestratorEnv(sandbox: Sandbox): Promise<Record<string, string>> {
  const { KUBECONFIG, TEMPORAL_ADDRESS, PROBE_TARGET_HTTP, PROBE_TARGET_CA } = sandbox.settings();
  return {
    KUBECONFIG,
    TEMPORAL_ADDRESS,
    PROBE_URL: PROBE_TARGET_HTTP,
    PROBE_CA_FILE: PROBE_TARGET_CA,
    PROVIDERS_CONFIG: join(sandbox.dir, 'providers.yaml'),
    LEASE_DB: join(sandbox.dir, 'leases.db'),
    LEASE_API_ADDRESS: `127.0.0.1:${await freePort()}`,
    METRICS_ADDRESS: `127.0.0.1:${await freePort()}`,
  };
}

export function runOrchestrator(args: string[], env: Record<string, string>, program = 'worker/main.ts'): Orchestrator {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: projectRoot,
    env: { ...environmentWithoutVitest(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = collectOutput(child);
  const exited = exitOf(child);
  return {
    pid: child.pid ?? 0,
    output,
    exited,
    async ready() {
      const { promise, resolve } = Promise.withResolvers<'ready'>();
      const look = () => output().includes('"msg":"ready"') && resolve('ready');
      child.stdout?.on('data', look);
      look();
      const outcome = await Promise.race([promise, exited]);
      child.stdout?.off('data', look);
      if (outcome !== 'ready') throw new Error(`worker/main.ts ended with ${outcome}. It said:\n${output()}`);
    },
    kill: (signal) => {
      child.kill(signal);
    },
  };
}

/** Also waits for the end of its output. */
function exitOf(child: ChildProcess): Promise<number | NodeJS.Signals> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'SIGKILL'));
  });
}

/** One that is free right now must do. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
