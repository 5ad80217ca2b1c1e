import type { Proxy } from './proxy.ts';

/** What is known of all Proxies right now, from memory: an informer's cache, or a list in a test. */
export interface ProxyView {
  /** False until the first complete list has arrived. */
  readonly synced: boolean;
  all(): Iterable<Proxy>;
  byUid(uid: string): Proxy | undefined;
  /** Calls back after a Proxy was added, changed or removed (then `byUid` has it no more). Returns the unsubscribe. */
  subscribe(listener: (proxy: Proxy, change: 'changed' | 'removed') => void): () => void;
}
