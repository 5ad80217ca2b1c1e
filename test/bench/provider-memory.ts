/**
 * How much memory a worker needs with a `gcp` provider in its providers file, and without: the whole `node worker/main.ts
 * --role worker`, on a real API server and a real Temporal server, each provider listed by sweeps until it is measured. The
 * Compute Engine is the tests' own. Needs Linux. Run it with `npx node test/bench/provider-memory.ts [--runs 5] [--settle 10]`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { obtainParts } from '../../deploy/sandbox/parts.ts';
import { type ComputeEngine, startComputeEngine } from '../fakes/compute-engine/index.ts';
import { type RealServers, startRealServers } from '../setup/real-servers.ts';

const MIB = 1024;
const START_MILLIS = 60_000;

interface Bench {
  servers: RealServers;
  engine: ComputeEngine;
  dir: string;
  squid: string;
  settleSeconds: number;
}

/** Mebibytes, as the kernel counts them. */
interface Memory {
  resident: number;
  /** What of it is not a file's, such as the program and its libraries: heaps above all. */
  anonymous: number;
}

type Kind = 'host' | 'host and gcp';

/** JSON is YAML. */
function providersFile({ engine, dir, squid }: Bench, kind: Kind): string {
  const { url: endpoint, projectId } = engine;
  const host = {
    name: 'local',
    type: 'host',
    stateDir: join(dir, 'host'),
    addresses: '127.91.0.0/28',
    clients: ['127.0.0.0/8'],
    squid,
  };
  const gcp = { name: 'gcp', type: 'gcp', projectId, endpoint, credentials: 'none' };
  const path = join(dir, 'providers.yaml');
  writeFileSync(path, JSON.stringify(kind === 'host' ? [host] : [host, gcp]));
  return path;
}

/** Starts a worker, lets it sweep its providers for a while, and measures it. */
async function measure(bench: Bench, kind: Kind): Promise<Memory> {
  const { servers, engine, settleSeconds } = bench;
  const env = {
    PATH: process.env.PATH,
    KUBECONFIG: servers.kubeconfig,
    TEMPORAL_ADDRESS: servers.temporalAddress,
    PROVIDERS_CONFIG: providersFile(bench, kind),
    PROBE_URL: 'http://127.0.0.1:9/',
    METRICS_ADDRESS: '127.0.0.1:0',
    DRIFT_INTERVAL: '2s',
  };
  const worker = spawn(process.execPath, ['worker/main.ts', '--role', 'worker'], {
    cwd: join(import.meta.dirname, '../..'),
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(worker, 'exit');
  let output = '';
  worker.stdout.on('data', (chunk: Buffer) => {
    output += chunk;
  });
  const lists = () => engine.state().calls['instances.aggregatedList'] ?? 0;
  const before = lists();
  try {
    await until(() => output.includes('"msg":"ready"') || worker.exitCode !== null);
    if (worker.exitCode !== null) throw new Error(`The worker ended with ${worker.exitCode}:\n${output}`);
    if (kind !== 'host') await until(() => lists() > before);
    await sleep(settleSeconds * 1000);
    return memoryOf(worker.pid ?? 0);
  } finally {
    worker.kill('SIGTERM');
    await exited;
  }
}

async function until(holds: () => boolean): Promise<void> {
  const deadline = Date.now() + START_MILLIS;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(`Nothing came of the worker within ${START_MILLIS / 1000} s`);
    await sleep(50);
  }
}

function memoryOf(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kib = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]);
  return { resident: kib('VmRSS') / MIB, anonymous: kib('RssAnon') / MIB };
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [below = 0, above = 0] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.floor(sorted.length / 2)]];
  return (below + above) / 2;
}

function rowOf(runs: Memory[]) {
  const resident = runs.map((run) => run.resident);
  return {
    runs: runs.length,
    'resident MiB, median': Math.round(median(resident)),
    min: Math.round(Math.min(...resident)),
    max: Math.round(Math.max(...resident)),
    'anonymous MiB, median': Math.round(median(runs.map(({ anonymous }) => anonymous))),
  };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { runs: { type: 'string', default: '5' }, settle: { type: 'string', default: '10' } },
  });
  const [runs, settleSeconds] = [Number(values.runs), Number(values.settle)];
  const { squid } = await obtainParts({ only: ['squid'] });
  await using stack = new AsyncDisposableStack();
  const dir = stack.adopt(mkdtempSync(join(tmpdir(), 'provider-memory-')), (path) => rmSync(path, { recursive: true }));
  const engine = stack.adopt(await startComputeEngine(), (one) => one.close());
  const servers = stack.adopt(await startRealServers(), (one) => one.stop());
  const bench = { servers, engine, dir, squid, settleSeconds };
  const measured: Record<Kind, Memory[]> = { host: [], 'host and gcp': [] };
  // In turns: what else the machine does meanwhile meets both.
  for (let run = 0; run < runs; run += 1) {
    for (const kind of ['host', 'host and gcp'] as const) measured[kind].push(await measure(bench, kind));
  }
  console.log(`A worker (node worker/main.ts --role worker) ${settleSeconds} s after its start, with these providers:`);
  const [without, withGcp] = [rowOf(measured.host), rowOf(measured['host and gcp'])];
  console.table({ host: without, 'host and gcp': withGcp });
  const more = withGcp['resident MiB, median'] - without['resident MiB, median'];
  console.log(`A gcp provider costs ${more} MiB of resident memory, by the medians`);
}

await main();
