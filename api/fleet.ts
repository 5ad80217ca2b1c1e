import { conditionOf } from '../model/condition.ts';
import { healthOf, type Proxy } from '../model/proxy.ts';
import type { ProxyView } from '../model/proxy-view.ts';
import type { Candidate } from './leases/store.ts';

/** Attributes a proxy must have, each with exactly this value. Empty: every proxy matches. */
export type Selector = Readonly<Record<string, string>>;

/** The proxies that match a selector, sorted by what can be done with them. */
export interface Match {
  /** Healthy ones, in order of preference: lowest latency, then namespace and name. */
  readonly candidates: readonly Candidate[];
  /** How many are not healthy: not provisioned yet, failed, or seen failing by probes. */
  readonly unhealthy: number;
  /** Cordoned or being deleted. Nobody is waiting for these to come back, so they are not among the considered. */
  readonly withdrawn: number;
  /** The shortest probe interval among the unhealthy: the soonest that one of them may be found healthy. */
  readonly nextProbeSeconds: number | undefined;
}

export interface Fleet {
  match(selector: Selector): Match;
}

/** Provisioned, seen healthy by probes, with an address, and not on its way out. */
export function isHealthy({ metadata, status }: Proxy): boolean {
  return (
    metadata.deletionTimestamp === undefined &&
    hasAddress(status) &&
    conditionOf(status?.conditions, 'Provisioned')?.status === 'True' &&
    conditionOf(status?.conditions, 'Healthy')?.status === 'True'
  );
}

const isWithdrawn = ({ spec, metadata }: Proxy): boolean =>
  spec.cordoned === true || metadata.deletionTimestamp !== undefined;

export const hasAddress = (status: Proxy['status']): boolean => Boolean(status?.ip && status.port);

export const matches = (selector: Selector, { spec }: Proxy): boolean =>
  Object.entries(selector).every(([key, value]) => spec.attributes?.[key] === value);

export const byNamespaceAndName = (a: Proxy, b: Proxy): number =>
  order(a.metadata.namespace, b.metadata.namespace) || order(a.metadata.name, b.metadata.name);

const byLatency = (a: Proxy, b: Proxy): number =>
  order(a.status?.latencyMillis ?? Number.MAX_VALUE, b.status?.latencyMillis ?? Number.MAX_VALUE);

/** By code unit, so that the order is the same in every locale. */
const order = <T extends string | number>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0);

/** Selectors come from clients: more different ones than this, and the cache starts over rather than grow. */
const CACHED_SELECTORS = 200;

/**
 * The view as the lease API asks for it. A match is worked out once per selector and kept until any Proxy changes: changes
 * are few per second, leases are thousands. Lives as long as the view.
 */
export function createFleet(view: ProxyView): Fleet {
  const cache = new Map<string, Match>();
  view.subscribe(() => cache.clear());

  return {
    match(selector) {
      const key = JSON.stringify(Object.entries(selector).sort(([a], [b]) => order(a, b)));
      const cached = cache.get(key);
      if (cached) return cached;
      const match = sortOut([...view.all()].filter((proxy) => matches(selector, proxy)));
      if (cache.size >= CACHED_SELECTORS) cache.clear();
      cache.set(key, match);
      return match;
    },
  };
}

function sortOut(matching: Proxy[]): Match {
  const considered = matching.filter((proxy) => !isWithdrawn(proxy));
  const unhealthy = considered.filter((proxy) => !isHealthy(proxy));
  const intervals = unhealthy.map(({ spec }) => healthOf(spec).intervalSeconds);
  return {
    candidates: considered
      .filter(isHealthy)
      .sort((a, b) => byLatency(a, b) || byNamespaceAndName(a, b))
      .map(({ metadata, spec }) => ({ uid: metadata.uid, maxConcurrent: spec.lease?.maxConcurrent ?? 1 })),
    unhealthy: unhealthy.length,
    withdrawn: matching.length - considered.length,
    nextProbeSeconds: intervals.length > 0 ? Math.min(...intervals) : undefined,
  };
}
