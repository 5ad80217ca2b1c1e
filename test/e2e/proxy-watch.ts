import { setTimeout as sleep } from 'node:timers/promises';
import { CustomObjectsApi, type KubeConfig, Watch } from '@kubernetes/client-node';
import { GROUP, PROXIES, type Proxy, VERSION } from '../../model/proxy.ts';

const PATH = `/apis/${GROUP}/${VERSION}/${PROXIES}`;
const RETRY_MILLIS = 100;

/** Every version of every Proxy, as the API server tells them from when the watch began. */
export interface ProxyWatch {
  /** Undefined when there is none, or it is gone. */
  current(name: string): Proxy | undefined;
  all(): Proxy[];
  /** Every version seen of this name, oldest first. */
  versions(name: string): Proxy[];
  /** Calls back on each change. Returns how to end that. */
  subscribe(listener: () => void): () => void;
  stop(): Promise<void>;
}

/** Names must be unique over all namespaces. Goes on when the API server has been restarted. */
export async function watchProxies(kubeConfig: KubeConfig): Promise<ProxyWatch> {
  const api = kubeConfig.makeApiClient(CustomObjectsApi);
  const stopping = new AbortController();
  const current = new Map<string, Proxy>();
  const versions = new Map<string, Proxy[]>();
  const listeners = new Set<() => void>();
  /** Empty: the place is lost, and all must be listed again. */
  let resourceVersion = '';

  function put(proxy: Proxy, gone: boolean): void {
    const { name } = proxy.metadata;
    if (gone) current.delete(name);
    else current.set(name, proxy);
    versions.set(name, [...(versions.get(name) ?? []), proxy]);
    for (const listener of listeners) listener();
  }

  async function list(): Promise<void> {
    const page = (await api.listClusterCustomObject({ group: GROUP, version: VERSION, plural: PROXIES })) as {
      items: Proxy[];
      metadata: { resourceVersion: string };
    };
    const listed = new Set(page.items.map(({ metadata }) => metadata.name));
    for (const proxy of [...current.values()]) if (!listed.has(proxy.metadata.name)) put(proxy, true);
    for (const proxy of page.items) put(proxy, false);
    ({ resourceVersion } = page.metadata);
  }

  async function watchOnce(): Promise<void> {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const onEvent = (type: string, proxy: Proxy) => {
      // A server that was restarted no longer knows what came before.
      if (type === 'ERROR') resourceVersion = '';
      else {
        ({ resourceVersion } = proxy.metadata);
        put(proxy, type === 'DELETED');
      }
    };
    const request = await new Watch(kubeConfig).watch(PATH, { resourceVersion }, onEvent, () => resolve());
    const abort = () => request.abort();
    stopping.signal.addEventListener('abort', abort);
    if (stopping.signal.aborted) abort();
    await over;
    stopping.signal.removeEventListener('abort', abort);
  }

  async function follow(): Promise<void> {
    while (!stopping.signal.aborted) {
      await (resourceVersion ? watchOnce() : list()).catch(() => undefined);
      await sleep(RETRY_MILLIS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  while (!resourceVersion) await list().catch(forgiveInitializing);
  const following = follow();
  return {
    current: (name) => current.get(name),
    all: () => [...current.values()],
    versions: (name) => versions.get(name) ?? [],
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async stop() {
      stopping.abort();
      await following;
    },
  };
}

/** Right after a CRD was made, the server says for a moment that its storage is initializing. */
async function forgiveInitializing(error: { code?: number }): Promise<void> {
  if (error.code !== 429) throw error;
  await sleep(RETRY_MILLIS);
}
