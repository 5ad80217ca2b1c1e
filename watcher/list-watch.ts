import { setTimeout as sleep } from 'node:timers/promises';
import { type KubeConfig, Watch } from '@kubernetes/client-node';

export interface Listed {
  metadata: { name: string; namespace: string; uid: string; resourceVersion: string };
}

export interface ListPage<T> {
  items: T[];
  metadata?: { resourceVersion?: string; _continue?: string; continue?: string };
}

export interface ListWatchOptions<T extends Listed> {
  kubeConfig: KubeConfig;
  /** For people, in log lines: `Proxies`. */
  what: string;
  /** Of the collection, as in `/apis/GROUP/VERSION/proxies`. */
  path: string;
  labelSelector?: string;
  /** One page of the collection. */
  list(query: { limit: number; continueToken?: string }): Promise<ListPage<T>>;
  /** A complete list: what is not in it is gone. */
  onList(items: T[]): void;
  onEvent(type: 'ADDED' | 'MODIFIED' | 'DELETED', item: T): void;
  /** How long one watch lasts before everything is listed again; jittered downwards by up to a fifth. */
  relistMillis: number;
  warn(message: string, error: unknown): void;
  now?(): number;
}

export interface ListWatch {
  /** Milliseconds since the epoch of the last complete list, and of the last sign of life of the watch; 0 before the first. */
  readonly listedAt: number;
  readonly heardAt: number;
  stop(): Promise<void>;
}

const PAGE = 500;
/** The API server sends bookmarks about once a minute: a watch that is silent for longer than this is half open. */
const SILENCE_MILLIS = 90_000;
const BACKOFF_MILLIS = 500;
const BACKOFF_MAX_MILLIS = 15_000;

/**
 * List, watch until the server ends it, list again, for as long as it lives. Of any trouble (410, 5xx, a half-open
 * connection, a restart of the server) the cure is the same: list again, after a wait that grows while it persists.
 * Handlers must only take note: they run inside the stream.
 */
export function startListWatch<T extends Listed>(options: ListWatchOptions<T>): ListWatch {
  const { kubeConfig, what, path, labelSelector, list, onList, onEvent, relistMillis, warn, now = Date.now } = options;
  const stopping = new AbortController();
  const state = { listedAt: 0, heardAt: 0 };

  async function listAll(): Promise<string> {
    const items: T[] = [];
    let continueToken: string | undefined;
    let resourceVersion = '';
    do {
      const page = await list({ limit: PAGE, ...(continueToken && { continueToken }) });
      items.push(...page.items);
      resourceVersion = page.metadata?.resourceVersion ?? '';
      continueToken = page.metadata?._continue || page.metadata?.continue || undefined;
    } while (continueToken);
    onList(items);
    state.listedAt = state.heardAt = now();
    return resourceVersion;
  }

  /** Resolves when the watch is over, for whatever reason; rejects on what deserves a backoff. */
  async function watch(resourceVersion: string): Promise<void> {
    const { promise: over, resolve, reject } = Promise.withResolvers<void>();
    const timeoutSeconds = Math.ceil((relistMillis / 1000) * (1 - Math.random() / 5));
    const query = {
      resourceVersion,
      allowWatchBookmarks: true,
      timeoutSeconds,
      ...(labelSelector && { labelSelector }),
    };
    const controller = await newWatch(kubeConfig).watch(
      path,
      query,
      (type: string, item: T) => {
        state.heardAt = now();
        if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') onEvent(type, item);
        // In-stream errors are about the resource version being too old: only a new list helps.
        else if (type === 'ERROR') resolve();
      },
      (error: unknown) => (error && !stopping.signal.aborted ? reject(error) : resolve()),
    );
    const abort = () => controller.abort();
    stopping.signal.addEventListener('abort', abort);
    if (stopping.signal.aborted) abort();
    try {
      await over;
    } finally {
      stopping.signal.removeEventListener('abort', abort);
      controller.abort();
    }
  }

  async function run(): Promise<void> {
    let failures = 0;
    while (!stopping.signal.aborted) {
      try {
        const resourceVersion = await listAll();
        failures = 0;
        await watch(resourceVersion);
      } catch (error) {
        if (stopping.signal.aborted) return;
        failures += 1;
        const pause = Math.min(BACKOFF_MAX_MILLIS, BACKOFF_MILLIS * 2 ** (failures - 1)) * (0.5 + Math.random() / 2);
        warn(`Watching ${what} failed; listing them again in ${Math.round(pause)} ms`, error);
        await sleep(pause, undefined, { signal: stopping.signal }).catch(() => {});
      }
    }
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

/** The client gives up on a watch that is silent for 30 s, less than the pace of bookmarks, and has no option for it. */
function newWatch(kubeConfig: KubeConfig): Watch {
  return Object.assign(new Watch(kubeConfig), { requestTimeoutMs: SILENCE_MILLIS });
}
