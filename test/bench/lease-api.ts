/**
 * What the lease API does per second on one core: the server in this thread, on a real file and port, the crawlers in
 * another thread. Run it with `npx node test/bench/lease-api.ts [seconds per row]`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { pino } from 'pino';
import { Pool } from 'undici';
import { createLeaseApp } from '../../api/app.ts';
import { openEmbeddedLeaseStore } from '../../api/leases/embedded.ts';
import { startLeaseApi } from '../../api/server.ts';
import { aProxy, editableView } from '../api/proxies.ts';

const PROXIES = 1000;
const PLACES = 5;
const CONNECTIONS = 32;

interface Load {
  origin: string;
  seconds: number;
  /** `churn`: lease and release in turn. `lease`: lease only, each in another place. */
  kind: 'churn' | 'lease';
  selector: Record<string, string>;
}

interface Measured {
  requests: number;
  granted: number;
  seconds: number;
  /** Milliseconds per request, sorted. */
  latencies: number[];
}

/** What is out before a row is measured, and what is asked for then. */
const rows: { name: string; taken: number; kind: Load['kind']; selector: Record<string, string> }[] = [
  { name: 'lease + release, idle fleet', taken: 0, kind: 'churn', selector: {} },
  { name: 'lease + release, a tenth of the fleet matches', taken: 0, kind: 'churn', selector: { shard: '3' } },
  { name: 'lease + release, fleet 4/5 taken', taken: PROXIES * (PLACES - 1), kind: 'churn', selector: {} },
  { name: 'refused, fleet full (409)', taken: PROXIES * PLACES, kind: 'lease', selector: {} },
  { name: 'refused, nothing matches (409)', taken: 0, kind: 'lease', selector: { shard: 'none' } },
];

async function serveAndMeasure(secondsPerRow: number): Promise<void> {
  const fleet = Array.from({ length: PROXIES }, (_, i) =>
    aProxy(`proxy-${i}`, {
      maxConcurrent: PLACES,
      latencyMillis: 50 + (i % 40),
      attributes: { shard: String(i % 10) },
    }),
  );
  const table: Record<string, string | number>[] = [];
  for (const { name, taken, kind, selector } of rows) {
    const folder = mkdtempSync(join(tmpdir(), 'lease-bench-'));
    const store = openEmbeddedLeaseStore(join(folder, 'leases.db'), { cooldownMillis: 600_000 });
    const candidates = fleet.map(({ metadata: { uid } }) => ({ uid, maxConcurrent: PLACES }));
    const request = { candidates, ttlMillis: 3_600_000, target: undefined, owner: undefined };
    await Promise.all(Array.from({ length: taken }, () => store.grant(request)));
    const app = createLeaseApp({
      view: editableView(...fleet),
      store,
      ttl: { defaultTtlSeconds: 300, maxTtlSeconds: 3600 },
      token: 'bench',
      credentials: () => undefined,
      logger: pino(pino.destination({ dest: '/dev/null', sync: false })),
      onLease: () => {},
      version: 'bench',
    });
    const server = await startLeaseApi({ app, hostname: '127.0.0.1', port: 0 });
    const cpuBefore = process.threadCpuUsage();
    const load: Load = { origin: `http://127.0.0.1:${server.port}`, seconds: secondsPerRow, kind, selector };
    const measured = await measureInAnotherThread(load);
    const cpu = process.threadCpuUsage(cpuBefore);
    table.push({
      load: name,
      ...summary(measured),
      'server CPU µs/request': Math.round((cpu.user + cpu.system) / measured.requests),
    });
    await server.close();
    await store.close();
    rmSync(folder, { recursive: true });
  }
  console.log(
    `${PROXIES} proxies of ${PLACES} places, ${CONNECTIONS} keep-alive connections, token, log and file in use`,
  );
  console.table(table);
}

function measureInAnotherThread(load: Load): Promise<Measured> {
  const { promise, resolve, reject } = Promise.withResolvers<Measured>();
  new Worker(import.meta.filename, { workerData: load }).once('message', resolve).once('error', reject);
  return promise;
}

function summary({ requests, granted, seconds, latencies }: Measured): Record<string, number> {
  const quantile = (q: number): number => Number((latencies[Math.floor(latencies.length * q)] ?? 0).toFixed(2));
  return {
    'requests/s': Math.round(requests / seconds),
    'leases/s': Math.round(granted / seconds),
    'p50 ms': quantile(0.5),
    'p99 ms': quantile(0.99),
  };
}

async function crawl({ origin, seconds, kind, selector }: Load): Promise<Measured> {
  const pool = new Pool(origin, { connections: CONNECTIONS });
  const measured: Measured = { requests: 0, granted: 0, seconds, latencies: [] };
  const headers = { authorization: 'Bearer bench', 'content-type': 'application/json' };
  const body = JSON.stringify({ selector, ttlSeconds: 60, target: 'shop.example', owner: 'bench' });

  async function call(method: 'POST' | 'DELETE', path: string): Promise<string> {
    const startedAt = performance.now();
    const response = await pool.request({ method, path, headers, ...(method === 'POST' && { body }) });
    const text = await response.body.text();
    measured.requests++;
    measured.latencies.push(performance.now() - startedAt);
    if (response.statusCode === 201) measured.granted++;
    else if (response.statusCode !== 204 && response.statusCode !== 409) throw new Error(text);
    return text;
  }

  const endsAt = performance.now() + seconds * 1000;
  async function crawler(): Promise<void> {
    while (performance.now() < endsAt) {
      const { leaseID } = JSON.parse(await call('POST', '/v1/leases')) as { leaseID?: string };
      if (kind === 'churn' && leaseID) await call('DELETE', `/v1/leases/${leaseID}`);
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, crawler));
  await pool.close();
  measured.latencies.sort((a, b) => a - b);
  return measured;
}

if (isMainThread) await serveAndMeasure(Number(process.argv[2] ?? 5));
else parentPort?.postMessage(await crawl(workerData as Load));
