import { CustomObjectsApi, KubeConfig } from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createLeaseActivities, createProviderActivities } from '../../activities/index.ts';
import { createKubernetes } from '../../activities/kubernetes.ts';
import type { Provider } from '../../activities/providers/contract.ts';
import type { SweepReport } from '../../activities/sweep/index.ts';
import type { Instance } from '../../model/instance.ts';
import { GROUP, PROXIES, type Proxy, VERSION } from '../../model/proxy.ts';
import { connectTemporal } from '../../worker/temporal-connection.ts';
import { startWorkers } from '../../worker/workers.ts';
import { createScriptedProvider } from '../integration/scripted-provider.ts';
import { startSystem } from '../integration/system.ts';
import { repetitions } from './fault.ts';

const FLEET = repetitions(300, 10_000);
const NAMESPACE = 'default';
const AT_ONCE = 40;
/** `--proxy-resync`, by default. */
const PASSES_PER_DAY = 24 / 6;

describe(`a sweep of ${FLEET} instances and as many Proxies`, () => {
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromFile(inject('kubeconfig'));
  const api = kubeConfig.makeApiClient(CustomObjectsApi);
  const coordinates = { group: GROUP, version: VERSION, plural: PROXIES, namespace: NAMESPACE };
  const names = Array.from({ length: FLEET }, (_, index) => `scale-${index}`);
  const instances: Instance[] = [];

  beforeAll(async () => {
    await inParallel(names, async (name) => {
      const body = {
        apiVersion: `${GROUP}/${VERSION}`,
        kind: 'Proxy',
        metadata: { name },
        spec: { provider: 'scale' },
      };
      const { metadata } = (await api.createNamespacedCustomObject({ ...coordinates, body })) as Proxy;
      const createdAt = new Date().toISOString();
      instances.push({
        name,
        providerID: name,
        uid: metadata.uid,
        state: 'Running',
        ip: '10.0.0.1',
        createdAt,
        specHash: '',
      });
    });
  }, 600_000);
  afterAll(() => inParallel(names, (name) => api.deleteNamespacedCustomObject({ ...coordinates, name })), 600_000);

  test('costs one list call of the provider and a handful of events', async () => {
    const temporal = await connectTemporal(inject('temporalAddress'), true);
    const kubernetes = createKubernetes(kubeConfig);
    let reads = 0;
    let lists = 0;
    const provider: Provider = {
      ...createScriptedProvider(),
      async list() {
        lists += 1;
        return { instances, unreachable: [] };
      },
    };
    const taskQueue = 'scale';
    const workers = await startWorkers(
      temporal,
      [
        {
          taskQueue,
          workflows: true,
          slots: 5,
          grace: 0,
          activities: {
            ...createLeaseActivities(async () => 0),
            ...createProviderActivities({
              kubernetes,
              provider: () => provider,
              settings: { minAgeMillis: 600_000, maxOrphans: 10, dryRun: false, blindToNamespaces: false },
              async listProxies() {
                reads += 1;
                return await kubernetes.listProxies(undefined);
              },
              readHealth: kubernetes.readProviderHealth,
              writeHealth: kubernetes.writeProviderHealth,
              nudge: async () => {},
              now: Date.now,
              countOrphans: () => {},
              log: { warn: () => {} },
            }),
          },
        },
      ],
      { maxCachedWorkflows: 10 },
    );
    try {
      const began = performance.now();
      const handle = await temporal.client.workflow.start('sweep', {
        workflowId: 'sweep-scale',
        taskQueue,
        args: [{ provider: 'scale', orphans: true }, taskQueue],
      });
      const report = (await handle.result()) as SweepReport;
      const seconds = (performance.now() - began) / 1000;
      const { historyLength } = await handle.describe();
      expect(report).toMatchObject({ instances: FLEET, orphansDeleted: 0 });
      expect(lists).toBe(1);
      expect(reads).toBe(1);
      expect(historyLength).toBeLessThan(15);
      console.log(
        table([
          ['one sweep of', 'provider lists', 'reads of all Proxies', 'Temporal events', 'seconds'],
          [
            `${FLEET} instances, ${FLEET} Proxies`,
            String(lists),
            `${reads}, in pages of 500`,
            String(historyLength),
            seconds.toFixed(2),
          ],
        ]),
      );
    } finally {
      await workers.stop();
      await temporal.close();
    }
  }, 300_000);
});

test('a Ready proxy costs fewer than 100 history events a day', async () => {
  const system = await startSystem({ kubeconfig: inject('kubeconfig'), temporalAddress: inject('temporalAddress') });
  try {
    const { workflow } = await system.apply('idle', { provider: 'scripted' });
    await system.ready('idle');
    const handle = system.client.workflow.getHandle(workflow);
    const settled = await settledLength(handle);
    // A nudge wakes it as its safety resync does, by one event of another kind.
    await handle.signal('nudge');
    const perPass = (await settledLength(handle, settled)) - settled;
    const perDay = perPass * PASSES_PER_DAY;
    expect(perDay).toBeLessThan(100);
    console.log(
      table([
        ['in steady state', 'events per pass', 'passes per day', 'events per proxy and day'],
        ['one Ready proxy', String(perPass), String(PASSES_PER_DAY), String(perDay)],
      ]),
    );
    await system.remove('idle');
    await system.gone('idle');
  } finally {
    await system.stop();
  }
});

/** The length of the history once it has stopped growing beyond `more`. */
async function settledLength(handle: { describe(): Promise<{ historyLength: number }> }, more = 0): Promise<number> {
  for (let last = 0; ; ) {
    const { historyLength } = await handle.describe();
    if (historyLength > more && historyLength === last) return last;
    last = historyLength;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

async function inParallel<T>(items: T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const rest = [...items];
  const worker = async () => {
    for (let item = rest.pop(); item !== undefined; item = rest.pop()) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')).join('\n');
}
