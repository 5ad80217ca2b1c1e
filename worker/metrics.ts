import { Counter, collectDefaultMetrics, Gauge, Registry, Summary } from 'prom-client';
import type { ProbeMetrics } from '../activities/probe-loop.ts';
import type { CountProviderCall } from '../activities/providers/metered.ts';
import type { Phase, Proxy } from '../model/proxy.ts';

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
  targetDown(url: string, down: boolean): void;
  /** `spared` is undefined where nobody can say. */
  countOrphans(provider: string, deleted: number, spared: number | undefined): void;
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
  const orphansDeleted = new Counter({
    name: 'proxy_operator_orphans_deleted_total',
    help: 'Instances without a Proxy that sweeps have deleted',
    labelNames: ['provider'],
    registers,
  });
  const orphansSpared = new Gauge({
    name: 'proxy_operator_orphans_spared',
    help: 'Instances without a Proxy that the last sweep did not delete: a dry run, too many, or a second look that disagreed',
    labelNames: ['provider'],
    registers,
  });
  const targetsDown = new Gauge({
    name: 'proxy_operator_probe_target_down',
    help: 'Whether most probes of a URL fail and a direct one does too: verdicts hold meanwhile',
    labelNames: ['url'],
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
    targetDown: (url, down) => targetsDown.set({ url }, down ? 1 : 0),
    countOrphans(provider, deleted, spared) {
      orphansDeleted.inc({ provider }, deleted);
      if (spared !== undefined) orphansSpared.set({ provider }, spared);
    },
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
            for (const [resource, read] of ageSources) {
              const since = read()[at];
              // Before the first list there is no age to tell.
              if (since > 0) this.set({ resource }, (Date.now() - since) / 1000);
            }
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
