import { CustomObjectsApi, KubeConfig, PatchStrategy, setHeaderOptions } from '@kubernetes/client-node';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { expect, vi } from 'vitest';
import { createKubernetesActivities, createProbeActivities, createProviderActivities } from '../../activities/index.ts';
import { createKubernetes } from '../../activities/kubernetes.ts';
import type { Provider } from '../../activities/providers/contract.ts';
import type { Timing } from '../../model/observation.ts';
import { GROUP, PROXIES, type Proxy, type ProxySpec, refOf, VERSION } from '../../model/proxy.ts';
import { instanceName } from '../../model/spec-hash.ts';
import { probesTaskQueue, proxyWorkflowID } from '../../model/workflow-names.ts';
import { startProxyCache } from '../../watcher/proxy-cache.ts';
import { startWatcher } from '../../watcher/watcher.ts';
import { connectTemporal } from '../../worker/temporal-connection.ts';
import { startWorkers, type WorkersOptions } from '../../worker/workers.ts';
import { createScriptedProvider, type ScriptedProvider } from './scripted-provider.ts';

const TIMING: Timing = {
  provisioningPoll: 100,
  deletionPoll: 100,
  provisioningTimeout: 1_500,
  quotaRetry: 300,
  backoffInitial: 100,
  backoffMax: 400,
  resync: 3_600_000,
};

const MERGE = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);
/** For a machine that is busy with other things as well; nothing here says how fast it is. */
const PATIENCE = { timeout: 90_000, interval: 50 };

// Errors are what these suites make; their warnings would bury a failure.
Runtime.install({ logger: new DefaultLogger('ERROR'), shutdownSignals: [] });

/** Real servers that know our resources and search attributes. */
export interface Servers {
  /** Path of a kubeconfig. */
  kubeconfig: string;
  /** host:port */
  temporalAddress: string;
}

export interface SystemOptions extends Partial<WorkersOptions> {
  watchResyncMillis?: number;
  /** One that outlives this system, as real ones do. */
  provider?: ScriptedProvider;
  /** A provider to serve instead of the scripted one, under the name that Proxies call it by. */
  serve?: { name: string; provider: Provider; zonal?: { defaultZone?: string } };
  timing?: Partial<Timing>;
}

/** Watcher, workflows and activities in this process, on real servers, with the provider `scripted` under control. */
export async function startSystem(servers: Servers, options: SystemOptions = {}) {
  const { watchResyncMillis = 60_000, provider = createScriptedProvider(), serve, timing, ...workersOptions } = options;
  const served = serve ?? { name: 'scripted', provider };
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromFile(servers.kubeconfig);
  const api = kubeConfig.makeApiClient(CustomObjectsApi);
  const stack = new AsyncDisposableStack();
  const warn = () => {};
  const taskQueue = 'test';
  const probed: string[] = [];

  const temporal = await connectTemporal(servers.temporalAddress, true);
  stack.defer(() => temporal.close());
  const cache = startProxyCache({ kubeConfig, relistMillis: 60_000, warn });
  stack.defer(() => cache.stop());

  const kubernetes = createKubernetes(kubeConfig);
  const workers = await startWorkers(
    temporal,
    [
      {
        taskQueue,
        workflows: true,
        slots: 50,
        grace: '5s',
        activities: {
          ...createKubernetesActivities({
            kubernetes,
            timing: { ...TIMING, ...timing },
            route: (name) =>
              name === served.name
                ? { name, configured: true, taskQueue, ...(serve?.zonal && { zonal: serve.zonal }) }
                : { name, configured: false, known: [served.name] },
            now: Date.now,
            warn,
          }),
          ...createProviderActivities({
            kubernetes,
            provider: () => served.provider,
            settings: { minAgeMillis: 600_000, maxOrphans: 10, dryRun: false, blindToNamespaces: false },
            listProxies: () => kubernetes.listProxies(undefined),
            readHealth: kubernetes.readProviderHealth,
            writeHealth: kubernetes.writeProviderHealth,
            nudge: (ref) => temporal.client.workflow.getHandle(proxyWorkflowID(ref)).signal('nudge'),
            now: Date.now,
            countOrphans: () => {},
            log: { warn: () => {} },
          }),
        },
      },
      {
        taskQueue: probesTaskQueue(taskQueue),
        workflows: false,
        slots: 2,
        grace: 0,
        activities: createProbeActivities({
          view: cache,
          async probe({ host }) {
            probed.push(host);
            return { ok: true, latencyMillis: 5 };
          },
          breaker: { holds: async () => false, forget: () => {} },
          credentials: () => undefined,
          defaultUrl: 'http://target.test/',
          concurrency: 8,
          metrics: { probed() {}, removed() {} },
          report: (ref, verdict) => temporal.client.workflow.getHandle(proxyWorkflowID(ref)).signal('verdict', verdict),
          now: Date.now,
          warn,
        }),
      },
    ],
    { maxCachedWorkflows: 100, ...workersOptions },
  );
  stack.defer(() => workers.stop());
  const watcher = startWatcher({
    kubeConfig,
    relistMillis: 60_000,
    warn,
    cache,
    client: temporal.client,
    taskQueue,
    probeShards: 1,
    resyncMillis: watchResyncMillis,
  });
  stack.defer(() => watcher.stop());

  const at = (name: string) => ({ group: GROUP, version: VERSION, plural: PROXIES, namespace: 'default', name });
  const read = async (name: string): Promise<Proxy> => (await api.getNamespacedCustomObject(at(name))) as Proxy;

  return {
    provider,
    probed,
    client: temporal.client,
    async apply(name: string, spec: ProxySpec): Promise<{ proxy: Proxy; instance: string; workflow: string }> {
      const body = { apiVersion: `${GROUP}/${VERSION}`, kind: 'Proxy', metadata: { name }, spec };
      const proxy = (await api.createNamespacedCustomObject({ ...at(name), body })) as Proxy;
      return { proxy, instance: instanceName(proxy.metadata.uid), workflow: proxyWorkflowID(refOf(proxy)) };
    },
    read,
    /** All there are, of one look. */
    list: async (): Promise<Proxy[]> => (await kubernetes.listProxies('default')).proxies,
    async patch(name: string, body: object): Promise<void> {
      await api.patchNamespacedCustomObject({ ...at(name), body }, MERGE);
    },
    async remove(name: string): Promise<void> {
      await api.deleteNamespacedCustomObject(at(name));
    },
    /** Waits until the CR's `Provisioned` condition reads `status/reason`; resolves with the CR. */
    provisioned: (name: string, expected: string): Promise<Proxy> =>
      vi.waitFor(async () => {
        const proxy = await read(name);
        const condition = proxy.status?.conditions?.find(({ type }) => type === 'Provisioned');
        expect(`${condition?.status}/${condition?.reason}`).toBe(expected);
        return proxy;
      }, PATIENCE),
    ready: (name: string, incarnation?: number): Promise<Proxy> =>
      vi.waitFor(async () => {
        const proxy = await read(name);
        expect(proxy.status?.phase).toBe('Ready');
        if (incarnation !== undefined) expect(proxy.status?.incarnation).toBe(incarnation);
        return proxy;
      }, PATIENCE),
    gone: (name: string): Promise<void> =>
      vi.waitFor(async () => {
        await expect(read(name)).rejects.toMatchObject({ code: 404 });
      }, PATIENCE),
    stop: () => stack.disposeAsync(),
  };
}

export type System = Awaited<ReturnType<typeof startSystem>>;
