import { parseArgs } from 'node:util';
import ms, { type StringValue } from 'ms';

/** The roles that one process can play; `all` is the usual choice for a single replica. */
export const ROLES = ['all', 'watcher', 'worker', 'api'] as const;
export type Role = (typeof ROLES)[number];

interface Setting<T> {
  env: string;
  /** As written on the command line or in the environment; undefined: none. */
  fallback?: string;
  /** What `--help` and the README say about it. */
  help: string;
  /** A flag without a value; in the environment `true` or `false`. */
  boolean?: true;
  /** Never a flag: command lines are there for everyone to read. */
  secret?: true;
  /** Throws an Error that says what is expected. */
  parse(text: string): T;
}

export interface ListenAddress {
  hostname: string;
  port: number;
}

/** Every setting there is. The flag is the key in kebab-case. */
const SETTINGS = {
  role: choice('ROLE', 'all', ROLES, 'What this process does: everything, or one role alone'),
  providersConfig: text('PROVIDERS_CONFIG', 'providers.yaml', 'YAML list of provider instances'),
  namespace: text('WATCH_NAMESPACE', '', 'Watch Proxies in this namespace only; empty: in all'),
  temporalAddress: text(
    'TEMPORAL_ADDRESS',
    '',
    'Temporal frontend, host:port; TLS, API key and namespace by the standard TEMPORAL_* variables',
  ),
  taskQueue: text('TASK_QUEUE', 'egress-proxies', 'Temporal task queue of workflows and of providers that name none'),
  deploymentName: text('DEPLOYMENT_NAME', 'egress-proxies', 'Temporal Worker Deployment that workers belong to'),
  deploymentBuildId: text(
    'DEPLOYMENT_BUILD_ID',
    '',
    'Version of that deployment that this process is; empty: unversioned (docs/changing-workflows.md)',
  ),
  serveQueues: list(
    'SERVE_QUEUES',
    '',
    'Task queues that the worker role serves, with commas; empty: --task-queue alone, with its probes',
  ),
  leaseApiAddress: address('LEASE_API_ADDRESS', ':8090', 'Where the lease API listens'),
  metricsAddress: address('METRICS_ADDRESS', ':8080', 'Where /metrics is served'),
  discoveryToken: token('DISCOVERY_TOKEN', 'Bearer token of the lease API; empty: none is asked for'),
  leaseDb: text('LEASE_DB', 'leases.db', 'SQLite file of the embedded lease store'),
  leaseTtl: duration('LEASE_TTL', '5m', 'TTL of a lease that asks for none'),
  leaseMaxTtl: duration('LEASE_MAX_TTL', '1h', 'The longest TTL that can be asked for'),
  cooldownWindow: duration('COOLDOWN_WINDOW', '10m', 'How long a limited or banned proxy is kept from its target'),
  probeUrl: url('PROBE_URL', 'What probes fetch for Proxies without a spec.health.url; needed by the worker role'),
  probeCaFile: text('PROBE_CA_FILE', '', "PEM file of CAs that probes trust besides the system's"),
  probeShards: count('PROBE_SHARDS', '4', 'Long-running activities that share the probing of the fleet'),
  probeConcurrency: count('PROBE_CONCURRENCY', '64', 'Probes under way at once, per shard'),
  provisioningPoll: duration('PROVISIONING_POLL', '5s', 'Between two looks at an instance on its way up'),
  deletionPoll: duration('DELETION_POLL', '5s', 'Between two looks at an instance on its way out'),
  provisioningTimeout: duration(
    'PROVISIONING_TIMEOUT',
    '15m',
    'After which an instance that does not run is made anew',
  ),
  quotaRetry: duration('QUOTA_RETRY', '5m', 'Wait after a quota or stockout error'),
  backoffInitial: duration('BACKOFF_INITIAL', '1s', 'First wait after an error; doubles each time, with jitter'),
  backoffMax: duration('BACKOFF_MAX', '5m', 'Longest wait after an error'),
  proxyResync: duration('PROXY_RESYNC', '6h', 'Each Proxy is looked at this often, whatever happens'),
  watchResync: duration('WATCH_RESYNC', '1m', 'Between two comparisons of Proxies with running workflows'),
  watchRelist: duration('WATCH_RELIST', '5m', 'Between two full lists of what is watched', '1s'),
  sweepInterval: duration('SWEEP_INTERVAL', '10m', 'Between two sweeps of a provider for drift and orphans'),
  driftInterval: duration('DRIFT_INTERVAL', '2m', 'Between two sweeps of a provider for drift alone'),
  gcMinAge: duration('GC_MIN_AGE', '10m', 'Instances younger than this are never taken for orphans'),
  gcMaxOrphans: count('GC_MAX_ORPHANS', '10', 'When a sweep finds more orphans than this, it deletes none and says so'),
  gcDryRun: toggle('GC_DRY_RUN', 'Delete no orphans, only say which would be'),
  gcAllowNamespaced: toggle('GC_ALLOW_NAMESPACED', 'Delete orphans although --namespace hides the Proxies of others'),
  cachedWorkflows: count('CACHED_WORKFLOWS', '1000', 'Workflows kept in memory, about 400 KB each'),
  logLevel: choice(
    'LOG_LEVEL',
    'info',
    ['debug', 'info', 'warn', 'error'] as const,
    'Lines below this level are not written',
  ),
};

type Settings_ = typeof SETTINGS;
export type Settings = {
  readonly [K in keyof Settings_]: Settings_[K] extends { parse(text: string): infer T } ? T : never;
};

/** A queue with a name of its own may only be served where its host is: never unless it is asked for. */
export const servedQueues = ({ serveQueues, taskQueue }: Settings): readonly string[] =>
  serveQueues.length > 0 ? serveQueues : [taskQueue];

/** Mistakes on the command line or in the environment, all of them, for people. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

const flagOf = (key: string): string => key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/**
 * Flags win over the environment, that over the defaults.
 * @throws SettingsError that names every mistake
 */
export function readSettings(args: string[], env: NodeJS.ProcessEnv): Settings | 'help' | 'version' {
  const entries = Object.entries(SETTINGS) as [keyof Settings, Setting<unknown>][];
  const options = Object.fromEntries(
    entries
      .filter(([, { secret }]) => !secret)
      .map(([key, { boolean }]) => [flagOf(key), { type: boolean ? ('boolean' as const) : ('string' as const) }]),
  );
  const values = parseFlags(args, options);
  if (values.help) return 'help';
  if (values.version) return 'version';

  const problems: string[] = [];
  const settings: Record<string, unknown> = {};
  for (const [key, setting] of entries) {
    const flag = values[flagOf(key)];
    const given = flag !== undefined ? String(flag) : (env[setting.env] ?? setting.fallback);
    try {
      settings[key] = given === undefined ? undefined : setting.parse(given);
    } catch (error) {
      const source = flag !== undefined ? `--${flagOf(key)}` : setting.env;
      problems.push(
        `${source}: ${(error as Error).message}, got ${setting.secret ? 'something else' : JSON.stringify(given)}`,
      );
    }
  }
  if (problems.length > 0) throw new SettingsError(problems.join('\n'));
  return settings as Settings;
}

function parseFlags(args: string[], options: Record<string, { type: 'string' | 'boolean' }>) {
  try {
    const flags = { help: { type: 'boolean', short: 'h' }, version: { type: 'boolean', short: 'v' } } as const;
    return parseArgs({ args, options: { ...options, ...flags }, strict: true }).values as Record<
      string,
      string | boolean | undefined
    >;
  } catch (error) {
    throw new SettingsError(`${(error as Error).message}. --help lists all flags`);
  }
}

/** One row per setting: flag, environment variable, default, meaning. The README's reference is this table. */
export function settingsTable(): { flag: string; env: string; fallback: string; help: string }[] {
  return Object.entries(SETTINGS as Record<string, Setting<unknown>>).map(
    ([key, { env, fallback = '', help, secret }]) => ({
      flag: secret ? '' : `--${flagOf(key)}`,
      env,
      fallback,
      help,
    }),
  );
}

function text(env: string, fallback: string, help: string): Setting<string> {
  return { env, fallback, help, parse: (given) => given };
}

/** Whatever can stand in an Authorization header (RFC 6750, wide). */
function token(env: string, help: string): Setting<string> {
  return {
    env,
    fallback: '',
    help,
    secret: true,
    parse(given) {
      if (!/^[\x21-\x7e]*$/.test(given)) throw new Error('expected printable ASCII without spaces or line breaks');
      return given;
    },
  };
}

function list(env: string, fallback: string, help: string): Setting<string[]> {
  const parse = (given: string) =>
    given
      .split(',')
      .map((item) => item.trim())
      .filter(Boolean);
  return { env, fallback, help, parse };
}

function toggle(env: string, help: string): Setting<boolean> {
  return {
    env,
    fallback: 'false',
    help,
    boolean: true,
    parse(given) {
      if (given !== 'true' && given !== 'false') throw new Error('expected true or false');
      return given === 'true';
    },
  };
}

function choice<const T extends readonly string[]>(
  env: string,
  fallback: T[number],
  choices: T,
  help: string,
): Setting<T[number]> {
  return {
    env,
    fallback,
    help: `${help} (${choices.join(', ')})`,
    parse(given) {
      if (!choices.includes(given)) throw new Error(`expected one of ${choices.join(', ')}`);
      return given;
    },
  };
}

/** Milliseconds, from text like `500ms`, `30s`, `5m` or `6h`. */
function duration(env: string, fallback: string, help: string, least: StringValue = '1ms'): Setting<number> {
  return {
    env,
    fallback,
    help,
    parse(given) {
      const millis = /^\d+(\.\d+)?\s*[a-z]+$/i.test(given) ? ms(given as StringValue) : undefined;
      if (millis === undefined) throw new Error('expected a duration such as 500ms, 30s, 5m or 6h');
      if (millis < ms(least)) throw new Error(`expected at least ${least}`);
      return millis;
    },
  };
}

function count(env: string, fallback: string, help: string): Setting<number> {
  return {
    env,
    fallback,
    help,
    parse(given) {
      if (!/^[1-9]\d{0,6}$/.test(given)) throw new Error('expected a whole number from 1');
      return Number(given);
    },
  };
}

function url(env: string, help: string): Setting<string | undefined> {
  return {
    env,
    help,
    parse(given) {
      if (!/^https?:$/.test(URL.parse(given)?.protocol ?? '')) throw new Error('expected an http or https URL');
      return given;
    },
  };
}

function address(env: string, fallback: string, help: string): Setting<ListenAddress> {
  return {
    env,
    fallback,
    help,
    parse(given) {
      const [, hostname = '', port = ''] = /^(\[[0-9a-f:]+\]|[^:]*):(\d{1,5})$/i.exec(given) ?? [];
      if (port === '' || Number(port) > 65535) throw new Error('expected HOST:PORT or :PORT');
      return { hostname: hostname.replace(/^\[|\]$/g, '') || '0.0.0.0', port: Number(port) };
    },
  };
}
