/**
 * How long it takes from applying a Proxy until it is Ready, as a client of the Kubernetes API sees it, beside the time that
 * Squid itself takes to answer. Needs a running sandbox (`npm start`, or SANDBOX_DIR for another folder) and deletes what
 * it makes. Run it with `npx node test/bench/apply-to-ready.ts [--proxies 30]`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, parseEnv } from 'node:util';
import { removeSharedMemory, serviceName } from '../../activities/providers/host/squid-shared-memory.ts';
import { squidConf } from '../../activities/providers/squid-conf.ts';
import { obtainParts } from '../../deploy/sandbox/parts.ts';
import { sandboxPaths } from '../../deploy/sandbox/paths.ts';
import { type Fleet, openFleet, readyAt } from '../e2e/fleet.ts';

const SQUID_RUNS = 10;
/** What the project promises for Proxies that are applied one after another, in milliseconds. */
const GOAL = { p50: 1_500, p95: 3_000 };

async function applyToReady(fleet: Fleet, name: string): Promise<number> {
  const began = performance.now();
  const created = await fleet.create(name, { provider: 'local' });
  await fleet.until(name, readyAt(created));
  return performance.now() - began;
}

/** Makes the Proxies in the way that `run` says, and deletes them again. */
async function measureFleet(
  fleet: Fleet,
  names: string[],
  run: (apply: (name: string) => Promise<number>) => Promise<number[]>,
): Promise<number[]> {
  try {
    return await run((name) => applyToReady(fleet, name));
  } finally {
    const made = names.filter((name) => fleet.watch.current(name));
    await Promise.all(made.map((name) => fleet.remove(name)));
    await Promise.all(made.map((name) => fleet.gone(name)));
  }
}

async function oneAfterAnother<T>(items: T[], work: (item: T) => Promise<number>): Promise<number[]> {
  const took: number[] = [];
  for (const item of items) took.push(await work(item));
  return took;
}

/** From spawn to the first byte of an answer, of a Squid with the configuration that the `host` provider writes. */
async function spawnToAnswer(program: string): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'squid-bench-'));
  const confPath = join(folder, 'squid.conf');
  const [listenAddress, port] = ['127.90.0.1', 20_000 + Math.floor(Math.random() * 10_000)];
  const access = { clients: ['127.0.0.0/8'], allowedNetworks: ['127.0.0.0/8'], httpPorts: [80], connectPorts: [443] };
  writeFileSync(confPath, squidConf({ ...access, port, listenAddress, outgoingAddress: listenAddress }));
  const began = performance.now();
  const squid = spawn(program, ['-N', '-f', confPath, '-n', serviceName(confPath)], { stdio: 'ignore' });
  const exited = once(squid, 'exit');
  try {
    while (!(await answers(listenAddress, port))) {
      if (squid.exitCode !== null) throw new Error(`Squid ended with ${squid.exitCode}`);
      await sleep(2);
    }
    return performance.now() - began;
  } finally {
    squid.kill('SIGKILL');
    await exited;
    await removeSharedMemory(confPath);
    rmSync(folder, { recursive: true });
  }
}

/** Whether anything comes back, an error page included. */
function answers(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 5_000 }, () => socket.write('GET / HTTP/1.0\r\n\r\n'));
    const end = (answered: boolean) => {
      socket.destroy();
      resolve(answered);
    };
    socket.once('data', () => end(true));
    socket.once('timeout', () => end(false));
    socket.once('error', () => end(false));
    socket.once('close', () => end(false));
  });
}

/** Milliseconds at a few quantiles: the value that this share of the runs did not exceed. */
function quantiles(millis: number[]) {
  const sorted = millis.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN);
  return { runs: sorted.length, p50: at(0.5), p95: at(0.95), max: at(1) };
}

function kubeconfigOfSandbox(): string {
  const { envFile } = sandboxPaths();
  try {
    const { KUBECONFIG } = parseEnv(readFileSync(envFile, 'utf8'));
    if (KUBECONFIG) return KUBECONFIG;
  } catch {
    // Said below.
  }
  throw new Error(`No sandbox runs: there is no ${envFile}. Start one with: npm start`);
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { proxies: { type: 'string', default: '30' } } });
  const count = Number(values.proxies);
  if (!Number.isInteger(count) || count < 1)
    throw new Error(`--proxies is a whole number from 1, not ${values.proxies}`);
  const { squid } = await obtainParts({ only: ['squid'] });
  const fleet = await openFleet(kubeconfigOfSandbox());
  try {
    const names = (run: string) => Array.from({ length: count }, (_, index) => `bench-${process.pid}-${run}-${index}`);
    const [single, together] = [names('single'), names('together')];
    const squids = quantiles(await oneAfterAnother(Array.from({ length: SQUID_RUNS }), () => spawnToAnswer(squid)));
    const singles = quantiles(await measureFleet(fleet, single, (apply) => oneAfterAnother(single, apply)));
    const all = quantiles(await measureFleet(fleet, together, (apply) => Promise.all(together.map(apply))));
    console.log('Milliseconds from apply to Ready, and of Squid alone from its start to its first answer:');
    console.table({ 'one after another': singles, 'all at once': all, 'Squid alone': squids });
    const met = singles.p50 < GOAL.p50 && singles.p95 < GOAL.p95;
    console.log(`Goal, one after another: p50 < ${GOAL.p50} ms, p95 < ${GOAL.p95} ms: ${met ? 'met' : 'missed'}`);
    process.exitCode = met ? 0 : 1;
  } finally {
    await fleet.close();
  }
}

await main();
