import { randomBytes } from 'node:crypto';
import { CoreV1Api, CustomObjectsApi, KubeConfig, PatchStrategy, setHeaderOptions } from '@kubernetes/client-node';
import { expect, inject, vi } from 'vitest';
import { GROUP, PROXIES, type Proxy, VERSION } from '../../../model/proxy.ts';
import type { Patience } from '../../../watcher/list-watch.ts';
import { type ProxyCache, startProxyCache } from '../../../watcher/proxy-cache.ts';
import { startApiServerGate } from '../api-server-gate.ts';

const MERGE = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);

/** Impatient with the server, except that a list again is never due: whatever is found, the recovery found it. */
export const IMPATIENT: Patience = {
  relistMillis: 600_000,
  silenceMillis: 1_000,
  pageMillis: 1_000,
  backoffMillis: 50,
  backoffMaxMillis: 500,
};

export const eventually = <T>(check: () => T | Promise<T>): Promise<T> =>
  vi.waitFor(check, { timeout: 30_000, interval: 25 });

export function kubeConfigFrom(file: string): KubeConfig {
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromFile(file);
  return kubeConfig;
}

/** A namespace of External Proxies on the real server, changed directly and watched through a gate. */
export async function startWatchedFleet(kubeconfigFile = inject('kubeconfig')) {
  const stack = new AsyncDisposableStack();
  const direct = kubeConfigFrom(kubeconfigFile);
  const api = direct.makeApiClient(CustomObjectsApi);
  const core = direct.makeApiClient(CoreV1Api);
  const namespace = `watch-${randomBytes(4).toString('hex')}`;
  await core.createNamespace({ body: { metadata: { name: namespace } } });
  const everything = { group: GROUP, version: VERSION, plural: PROXIES, namespace };
  // The server is shared: a later suite's orchestrator would make a workflow for each that is left.
  stack.defer(async () => void (await api.deleteCollectionNamespacedCustomObject(everything)));
  const gate = stack.adopt(await startApiServerGate(kubeconfigFile), (part) => part.stop());
  const kubeConfig = kubeConfigFrom(gate.kubeconfig);
  /** `changed NAME UID`, as the subscriber heard it. */
  const heard: string[] = [];
  const warnings: { message: string; error: unknown }[] = [];
  const warn = (message: string, error: unknown) => void warnings.push({ message, error });
  const at = (name: string) => ({ ...everything, name });

  const fleet = {
    namespace,
    gate,
    core,
    kubeConfig,
    heard,
    warnings,
    warn,
    /** Resolves once the cache is synced and its watch is open. */
    async watch(patience: Patience): Promise<ProxyCache> {
      const cache = stack.adopt(startProxyCache({ kubeConfig, namespace, warn, ...patience }), (part) => part.stop());
      cache.subscribe(({ metadata }, change) => void heard.push(`${change} ${metadata.name} ${metadata.uid}`));
      const watches = gate.count({ kind: 'watch' });
      await eventually(() => expect(gate.count({ kind: 'watch' })).toBe(watches + 1));
      return cache;
    },
    async create(name: string, attributes: Record<string, string> = {}): Promise<Proxy> {
      const spec = { mode: 'External', endpoint: { host: '192.0.2.1', port: 3128 }, attributes };
      const body = { apiVersion: `${GROUP}/${VERSION}`, kind: 'Proxy', metadata: { name }, spec };
      return (await api.createNamespacedCustomObject({ ...everything, body })) as Proxy;
    },
    async edit(name: string, attributes: Record<string, string>): Promise<void> {
      await api.patchNamespacedCustomObject({ ...at(name), body: { spec: { attributes } } }, MERGE);
    },
    async remove(name: string): Promise<void> {
      await api.deleteNamespacedCustomObject(at(name));
    },
    /** The cache has what the server has, to the version. */
    converged: (cache: ProxyCache): Promise<void> =>
      eventually(async () => {
        const { items } = (await api.listNamespacedCustomObject(everything)) as { items: Proxy[] };
        expect(versionsOf(cache.all())).toEqual(versionsOf(items));
      }),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
  return fleet;
}

const versionsOf = (proxies: Iterable<Proxy>): string[] =>
  [...proxies].map(({ metadata }) => `${metadata.name} ${metadata.uid} ${metadata.resourceVersion}`).sort();

export type WatchedFleet = Awaited<ReturnType<typeof startWatchedFleet>>;
