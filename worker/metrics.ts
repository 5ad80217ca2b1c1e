import { createServer } from 'node:http';
import { Counter, collectDefaultMetrics, Gauge, Registry, Summary } from 'prom-client';
import { request } from 'undici';
import type { ProbeMetrics } from '../activities/probe-loop.ts';
import type { CountProviderCall } from '../activities/providers/metered.ts';
import type { Phase, Proxy } from '../model/proxy.ts';
import type { ListenAddress } from './settings.ts';
import { StartError } from './start-error.ts';

const PHASES: Phase[] = [
  'Pending',
  'Provisioning',
  'Provisioned',
  'Ready',
  'Unhealthy',
  'Replacing',
  'Deleting',
  'Failed',
];

export interface Metrics {
  registry: Registry;
  probes: ProbeMetrics;
  countProviderCall: CountProviderCall;
  countLease(outcome: string): void;
  /** Each is read at scrape time. */
  watchProxies(proxies: () => Iterable<Proxy>): void;
  watchLeases(active: () => Promise<number>): void;
  watchAges(resource: string, ages: () => { listedAt: number; heardAt: number }): void;
  watchNudges(pending: () => number): void;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];

  // Sum and count only: with buckets, each of thousands of proxies would cost a dozen series.
  const durations = new Summary({
    name: 'healthcheck_duration_seconds',
    help: 'Duration of the probes through a proxy',
    labelNames: ['proxy'],
    percentiles: [],
    registers,
  });
  const failures = new Counter({
    name: 'healthcheck_failures_total',
    help: 'Probes through a proxy that failed',
    labelNames: ['proxy'],
    registers,
  });
  const providerRequests = new Counter({
    name: 'provider_requests_total',
    help: 'Calls to a provider, by result: ok or the class of the error',
    labelNames: ['provider', 'op', 'result'],
    registers,
  });
  const leaseRequests = new Counter({
    name: 'lease_requests_total',
    help: 'Calls of the lease API, by outcome',
    labelNames: ['outcome'],
    registers,
  });
  const ageSources = new Map<string, () => { listedAt: number; heardAt: number }>();

  return {
    registry,
    probes: {
      probed(proxy, seconds, ok) {
        durations.observe({ proxy }, seconds);
        failures.inc({ proxy }, ok ? 0 : 1);
      },
      removed(proxy) {
        durations.remove({ proxy });
        failures.remove({ proxy });
      },
    },
    countProviderCall: (provider, op, result) => providerRequests.inc({ provider, op, result }),
    countLease: (outcome) => leaseRequests.inc({ outcome }),
    watchProxies(proxies) {
      new Gauge({
        name: 'proxy_operator_proxies',
        help: 'Proxies by phase',
        labelNames: ['phase'],
        registers,
        collect() {
          for (const phase of PHASES) this.set({ phase }, 0);
          for (const { status } of proxies()) this.inc({ phase: status?.phase ?? 'Pending' });
        },
      });
    },
    watchLeases(active) {
      new Gauge({
        name: 'proxy_operator_leases_active',
        help: 'Leases in force',
        registers,
        async collect() {
          this.set(await active());
        },
      });
    },
    watchAges(resource, ages) {
      ageSources.set(resource, ages);
      if (ageSources.size > 1) return;
      const gauge = (name: string, help: string, at: 'listedAt' | 'heardAt') =>
        new Gauge({
          name,
          help,
          labelNames: ['resource'],
          registers,
          collect() {
            for (const [source, read] of ageSources) this.set({ resource: source }, (Date.now() - read()[at]) / 1000);
          },
        });
      gauge('watch_age_seconds', 'Time since the last event or bookmark of a watch', 'heardAt');
      gauge('relist_age_seconds', 'Time since the last full list of what is watched', 'listedAt');
    },
    watchNudges(pending) {
      new Gauge({
        name: 'proxy_operator_nudges_pending',
        help: 'Proxies whose change has not reached their workflow yet',
        registers,
        collect() {
          this.set(pending());
        },
      });
    },
  };
}

export interface MetricsServer {
  close(): Promise<void>;
}

/** Serves our registry and, where a worker runs, the Temporal SDK's own metrics below it. */
export async function serveMetrics(
  registry: Registry,
  { hostname, port }: ListenAddress,
  sdkMetricsUrl: string | undefined,
): Promise<MetricsServer> {
  const server = createServer(async (incoming, response) => {
    if (incoming.url?.split('?')[0] !== '/metrics') {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('Metrics are at /metrics\n');
      return;
    }
    try {
      const text = `${await registry.metrics()}\n${sdkMetricsUrl ? await sdkMetrics(sdkMetricsUrl) : ''}`;
      response.writeHead(200, { 'content-type': registry.contentType }).end(text);
    } catch (error) {
      response.writeHead(500, { 'content-type': 'text/plain' }).end(`${(error as Error).message}\n`);
    }
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(port, hostname, resolve);
  await promise.catch((error: NodeJS.ErrnoException) => {
    const taken = error.code === 'EADDRINUSE' ? 'the address is taken' : error.message;
    throw new StartError(`Can't serve metrics at ${hostname}:${port}: ${taken}; choose another with --metrics-address`);
  });
  return {
    async close() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

/** A scrape is worth having without these: they are missing only while the SDK starts or stops. */
async function sdkMetrics(url: string): Promise<string> {
  try {
    const { body } = await request(url, { signal: AbortSignal.timeout(2_000) });
    return await body.text();
  } catch {
    return '';
  }
}
