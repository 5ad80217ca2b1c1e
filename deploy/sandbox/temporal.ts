import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { PartOptions } from './etcd.ts';
import { httpGet } from './http-get.ts';
import { loopback, randomPort } from './ports.ts';
import { type Child, startChild } from './processes.ts';

export interface Temporal extends Child {
  /** host:port of the gRPC frontend. */
  address: string;
  /** URL of the web UI; undefined when it was left out. */
  ui: string | undefined;
  namespace: 'default';
}

/** Workflows that set an attribute which the server doesn't know hang, so all are registered before anything runs. */
export const searchAttributes = ['ProxyPhase', 'ProxyProvider', 'ProxyName', 'ProxyNamespace'] as const;

/**
 * By default each of the server's transactions, a hundred in the life of a proxy, waits for the disk several times. As
 * with etcd, the sandbox survives kill -9 (the kernel keeps what was written), not a loss of power.
 */
const SQLITE_PRAGMAS = ['--sqlite-pragma=journal_mode=wal', '--sqlite-pragma=synchronous=off'];

/**
 * Starts the Temporal dev server on 127.0.0.1; ports are free ones unless given. With `database`, workflows survive a
 * restart; without, they are in memory. Ready means that the search attributes are registered.
 */
export async function startTemporal(
  options: PartOptions & {
    database?: string;
    ports?: { grpc: number; http: number; metrics: number; ui: number };
    /** Leave out the web UI. */
    headless?: boolean;
    /** Dynamic configuration of the server, such as `limit.historyCount.suggestContinueAsNew`. */
    dynamicConfig?: Record<string, unknown>;
  },
): Promise<Temporal> {
  const { binary, dir, recordDir, signal, onSpawn, hurry, headless = false } = options;
  const ports = options.ports ?? {
    grpc: await randomPort(),
    http: await randomPort(),
    metrics: await randomPort(),
    ui: await randomPort(),
  };
  mkdirSync(dir, { recursive: true });
  const namespaceUrl = `http://${loopback}:${ports.http}/api/v1/namespaces/default/search-attributes`;
  const child = await startChild({
    name: 'temporal',
    command: binary,
    args: [
      'server',
      'start-dev',
      `--ip=${loopback}`,
      `--port=${ports.grpc}`,
      `--http-port=${ports.http}`,
      `--metrics-port=${ports.metrics}`,
      ...(headless ? ['--headless'] : [`--ui-port=${ports.ui}`, '--ui-disable-news-fetch']),
      ...(options.database ? [`--db-filename=${options.database}`, ...SQLITE_PRAGMAS] : []),
      ...searchAttributes.map((attribute) => `--search-attribute=${attribute}=Keyword`),
      ...Object.entries(options.dynamicConfig ?? {}).map(
        ([key, value]) => `--dynamic-config-value=${key}=${JSON.stringify(value)}`,
      ),
      '--log-level=error',
    ],
    env: withoutTemporalSettings(process.env),
    logFile: options.logFile ?? join(dir, 'temporal.log'),
    ready: async (abort) => {
      const { status, body } = await httpGet(namespaceUrl, { signal: abort });
      return status === 200 && searchAttributes.every((attribute) => body.includes(`"${attribute}"`));
    },
    recordDir,
    signal,
    onSpawn,
    hurry,
  });
  const ui = headless ? undefined : `http://${loopback}:${ports.ui}`;
  return { ...child, address: `${loopback}:${ports.grpc}`, ui, namespace: 'default' };
}

/** The user's own TEMPORAL_* (another namespace, an API key, TLS) would lead away from the sandbox's server. */
export function withoutTemporalSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([key]) => !key.startsWith('TEMPORAL_')));
}
