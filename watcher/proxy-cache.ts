import type { KubeConfig } from '@kubernetes/client-node';
import { GROUP, PROXIES, type Proxy, VERSION } from '../model/proxy.ts';
import type { ProxyView } from '../model/proxy-view.ts';
import { type ListWatch, type Patience, startListWatch } from './list-watch.ts';

export interface CacheOptions extends Patience {
  kubeConfig: KubeConfig;
  /** Undefined: all namespaces. */
  namespace?: string;
  warn(message: string, error: unknown): void;
}

export interface ProxyCache extends ProxyView, ListWatch {}

type Listener = Parameters<ProxyView['subscribe']>[0];

/** All Proxies, in memory, as the API server last told. Subscribers hear of a change after the cache has it. */
export function startProxyCache({ namespace, ...options }: CacheOptions): ProxyCache {
  const { warn } = options;
  const proxies = new Map<string, Proxy>();
  const listeners = new Set<Listener>();
  let synced = false;

  function emit(proxy: Proxy, change: Parameters<Listener>[1]): void {
    for (const listener of listeners) {
      try {
        listener(proxy, change);
      } catch (error) {
        warn(`A handler failed on Proxy ${proxy.metadata.namespace}/${proxy.metadata.name}`, error);
      }
    }
  }

  function put(proxy: Proxy): void {
    const known = proxies.get(proxy.metadata.uid);
    if (known?.metadata.resourceVersion === proxy.metadata.resourceVersion) return;
    proxies.set(proxy.metadata.uid, proxy);
    emit(proxy, 'changed');
  }

  function remove(proxy: Proxy): void {
    if (proxies.delete(proxy.metadata.uid)) emit(proxy, 'removed');
  }

  const listWatch = startListWatch<Proxy>({
    ...options,
    what: 'Proxies',
    path: `/apis/${GROUP}/${VERSION}/${namespace ? `namespaces/${namespace}/` : ''}${PROXIES}`,
    onList(items) {
      const listed = new Set(items.map(({ metadata }) => metadata.uid));
      for (const [uid, proxy] of proxies) if (!listed.has(uid)) remove(proxy);
      // Before the handlers run, so that they already see the others.
      synced = true;
      for (const proxy of items) put(proxy);
    },
    onEvent: (type, proxy) => (type === 'DELETED' ? remove(proxy) : put(proxy)),
  });

  return {
    get synced() {
      return synced;
    },
    get listedAt() {
      return listWatch.listedAt;
    },
    get heardAt() {
      return listWatch.heardAt;
    },
    all: () => proxies.values(),
    byUid: (uid) => proxies.get(uid),
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    stop: () => listWatch.stop(),
  };
}
