import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeConfig } from '@kubernetes/client-node';
import { type Get, getJson, KubernetesError, watchEvents } from './kubernetes-get.ts';

export interface Listed {
  metadata: { name: string; namespace: string; uid: string; resourceVersion: string };
}

/** How patient a list-watch is. Production has the defaults. */
export interface Patience {
  /** How long one watch lasts before everything is listed again; jittered downwards by up to a fifth. */
  relistMillis: number;
  /** A watch on which nothing comes for so long is taken for half open; at most `relistMillis`. */
  silenceMillis?: number;
  /** A page of a list that takes longer is given up. */
  pageMillis?: number;
  /** Objects per page. */
  pageSize?: number;
  /** The wait after a first failure, doubled with each that follows, up to `backoffMaxMillis`. */
  backoffMillis?: number;
  backoffMaxMillis?: number;
}

export interface ListWatchOptions<T extends Listed> extends Patience {
  kubeConfig: KubeConfig;
  /** For people, in log lines: `Proxies`. */
  what: string;
  /** Of the collection, as in `/apis/GROUP/VERSION/proxies`. */
  path: string;
  labelSelector?: string;
  /** A complete list: what is not in it is gone. */
  onList(items: T[]): void;
  onEvent(type: 'ADDED' | 'MODIFIED' | 'DELETED', item: T): void;
  warn(message: string, error: unknown): void;
  now?(): number;
}

export interface ListWatch {
  /**
   * Milliseconds since the epoch, 0 before the first list: when the last complete list was asked for, and when the last
   * list, event or bookmark came in.
   */
  readonly listedAt: number;
  readonly heardAt: number;
  /** Settles at once, whatever is going on. No handler is called any more. */
  stop(): Promise<void>;
}

interface Page<T> {
  items: T[];
  metadata: { resourceVersion: string; continue?: string };
}

/** The API server sends bookmarks about once a minute: a watch that is silent for longer than this is half open. */
const SILENCE_MILLIS = 90_000;
const PAGE_MILLIS = 30_000;
const PAGE_SIZE = 500;
const BACKOFF_MILLIS = 500;
const BACKOFF_MAX_MILLIS = 15_000;
/** A watch that lives shorter is a failure, however it ended: else a server that ends each at once is listed in a hot loop. */
const STEADY_MILLIS = 10_000;

/**
 * List, watch until the server ends it, list again, for as long as it lives. Of any trouble (410, 5xx, a half-open
 * connection, a restart of the server) the cure is the same: list again, after a wait that grows while it persists.
 * Handlers must only take note: they run inside the stream.
 */
export function startListWatch<T extends Listed>(options: ListWatchOptions<T>): ListWatch {
  const { kubeConfig, what, path, labelSelector, onList, onEvent, relistMillis, warn, now = Date.now } = options;
  const { pageMillis = PAGE_MILLIS, pageSize = PAGE_SIZE } = options;
  const { backoffMillis = BACKOFF_MILLIS, backoffMaxMillis = BACKOFF_MAX_MILLIS } = options;
  const silenceMillis = Math.min(options.silenceMillis ?? SILENCE_MILLIS, relistMillis);
  const steadyMillis = Math.min(STEADY_MILLIS, relistMillis / 2);
  const stopping = new AbortController();
  const state = { listedAt: 0, heardAt: 0 };

  const get = (query: Get['query'], limitMillis: number): Get => ({
    kubeConfig,
    path,
    query: { ...query, labelSelector },
    signal: AbortSignal.any([stopping.signal, AbortSignal.timeout(limitMillis)]),
  });

  /** Resolves with the version to watch from. A list whose pages can't all be had (410 Expired) is none. */
  async function listAll(): Promise<string> {
    const askedAt = now();
    const items: T[] = [];
    let page: Page<T> | undefined;
    do {
      page = await getJson<Page<T>>(get({ limit: pageSize, continue: page?.metadata.continue }, pageMillis));
      items.push(...page.items);
    } while (page.metadata.continue);
    onList(items);
    state.listedAt = askedAt;
    state.heardAt = now();
    return page.metadata.resourceVersion;
  }

  /** Resolves when the watch ended well; all else deserves a backoff. */
  async function watch(resourceVersion: string): Promise<void> {
    const timeoutSeconds = Math.ceil((relistMillis / 1000) * (1 - Math.random() / 5));
    const query = { resourceVersion, allowWatchBookmarks: true, timeoutSeconds };
    // The server ends it before that, unless something between us and it doesn't pass the end on.
    const request = get(query, timeoutSeconds * 1000 + silenceMillis);
    for await (const { type, object } of watchEvents<T>({ ...request, silenceMillis })) {
      state.heardAt = now();
      if (type !== 'BOOKMARK') onEvent(type, object);
    }
  }

  async function run(): Promise<void> {
    let failures = 0;
    while (!stopping.signal.aborted) {
      let watchingSince = Number.POSITIVE_INFINITY;
      const wasSteady = () => performance.now() - watchingSince >= steadyMillis;
      try {
        const resourceVersion = await listAll();
        watchingSince = performance.now();
        await watch(resourceVersion);
        if (!wasSteady()) throw new Error('The watch ended as soon as it had begun');
        failures = 0;
      } catch (error) {
        if (stopping.signal.aborted) return;
        failures = wasSteady() ? 1 : failures + 1;
        const pause = pauseAfter(failures, error);
        warn(`Watching ${what} failed; listing them again in ${pause} ms`, error);
        await sleep(pause, undefined, { signal: stopping.signal }).catch(() => {});
      }
    }
  }

  function pauseAfter(failures: number, error: unknown): number {
    const asked = error instanceof KubernetesError ? error.retryAfterMillis : 0;
    const grown = backoffMillis * 2 ** (failures - 1) * (0.5 + Math.random() / 2);
    return Math.round(Math.min(backoffMaxMillis, Math.max(asked, grown)));
  }

  const running = run();
  return {
    get listedAt() {
      return state.listedAt;
    },
    get heardAt() {
      return state.heardAt;
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
