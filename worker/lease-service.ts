import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Logger } from 'pino';
import { countActiveLeases, createLeaseApp } from '../api/app.ts';
import { openEmbeddedLeaseStore } from '../api/leases/embedded.ts';
import { startLeaseApi } from '../api/server.ts';
import type { ProxyCache } from '../watcher/proxy-cache.ts';
import type { CredentialsCache } from '../watcher/secrets.ts';
import type { Metrics } from './metrics.ts';
import type { Settings } from './settings.ts';
import { StartError } from './start-error.ts';

const TRIM_MILLIS = 60_000;

export interface LeaseServiceDeps {
  settings: Settings;
  cache: ProxyCache;
  credentials: CredentialsCache;
  metrics: Metrics;
  logger: Logger;
  version: string;
  /** Whether a schedule of Temporal trims the store; else the service does it itself. */
  trimmedBySchedule: boolean;
}

export interface LeaseService {
  /** Removes ended leases and cooldowns that can't matter any more; how many there were. */
  trim(): Promise<number>;
  stop(): Promise<void>;
}

/** The lease API with the embedded store. Serves from memory: neither Temporal nor Kubernetes has to be there. */
export async function startLeaseService(deps: LeaseServiceDeps): Promise<LeaseService> {
  const { settings, cache, credentials, metrics, logger, version } = deps;
  const { leaseDb, leaseTtl, leaseMaxTtl, cooldownWindow, discoveryToken, leaseApiAddress } = settings;
  if (!discoveryToken)
    logger.warn('THE LEASE API IS OPEN: no DISCOVERY_TOKEN is set, anyone who reaches it can lease proxies');

  const store = openStore(leaseDb, cooldownWindow);
  metrics.watchLeases(() => countActiveLeases(cache, store));
  const trimming = deps.trimmedBySchedule
    ? undefined
    : setInterval(() => {
        store
          .trim()
          .catch((error: unknown) => logger.warn({ err: error }, 'Trimming leases failed; trying again later'));
      }, TRIM_MILLIS);
  const app = createLeaseApp({
    view: cache,
    store,
    ttl: { defaultTtlSeconds: Math.round(leaseTtl / 1000), maxTtlSeconds: Math.round(leaseMaxTtl / 1000) },
    token: discoveryToken,
    credentials: (proxy) => credentials.of(proxy),
    logger,
    onLease: metrics.countLease,
    version,
  });
  async function close(): Promise<void> {
    clearInterval(trimming);
    await store.close();
  }
  try {
    const server = await startLeaseApi({ app, ...leaseApiAddress });
    return {
      trim: () => store.trim(),
      async stop() {
        await server.close();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw new StartError(`${(error as Error).message}; choose another with --lease-api-address`);
  }
}

function openStore(path: string, cooldownMillis: number) {
  try {
    mkdirSync(dirname(path), { recursive: true });
    return openEmbeddedLeaseStore(path, { cooldownMillis });
  } catch (error) {
    throw new StartError(`Can't open the lease store ${path}: ${(error as Error).message}`);
  }
}
