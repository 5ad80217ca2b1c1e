import { CoreV1Api, KubeConfig, PatchStrategy, setHeaderOptions } from '@kubernetes/client-node';
import { expect, inject, vi } from 'vitest';
import { CLOUD_INIT_LABEL } from '../../model/proxy.ts';
import { createScriptedProvider } from '../integration/scripted-provider.ts';
import type { System } from '../integration/system.ts';
import { systemsOfThisFile } from '../integration/systems.ts';
import { faultTest } from './fault.ts';

const PATIENCE = { timeout: 60_000, interval: 100 };
const SECRET = { name: 'rotated-while-away', namespace: 'default' };

const systems = systemsOfThisFile();

function start(provider = createScriptedProvider()): Promise<System> {
  const servers = { kubeconfig: inject('kubeconfig'), temporalAddress: inject('temporalAddress') };
  return systems.start(servers, { provider, watchResyncMillis: 1_000 });
}

faultTest(
  { fault: 'watcher away: a Proxy is deleted', times: 1, checked: 'its workflow ends within a resync' },
  async () => {
    const before = await start();
    const { workflow } = await before.apply('went', { mode: 'External', endpoint: { host: '127.99.9.8' } });
    await before.ready('went');
    await systems.stop(before);
    await before.remove('went');
    const after = await start();
    await vi.waitFor(async () => {
      const { status } = await after.client.workflow.getHandle(workflow).describe();
      expect(status.name).toBe('COMPLETED');
    }, PATIENCE);
  },
);

faultTest(
  {
    fault: 'watcher away: a cloud-init Secret is rotated',
    times: 1,
    checked: 'replaced, though the spec is untouched',
  },
  async () => {
    const kubeConfig = new KubeConfig();
    kubeConfig.loadFromFile(inject('kubeconfig'));
    const core = kubeConfig.makeApiClient(CoreV1Api);
    const metadata = { name: SECRET.name, labels: { [CLOUD_INIT_LABEL]: 'true' } };
    await core.createNamespacedSecret({ namespace: SECRET.namespace, body: { metadata, stringData: { text: 'one' } } });

    const provider = createScriptedProvider();
    const before = await start(provider);
    const cloudInit = { secretRef: { name: SECRET.name, key: 'text' } };
    const { instance } = await before.apply('rotated', { provider: 'scripted', cloudInit });
    await before.ready('rotated', 1);
    await systems.stop(before);
    const merge = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);
    await core.patchNamespacedSecret({ ...SECRET, body: { stringData: { text: 'two' } } }, merge);

    const after = await start(provider);
    await after.ready('rotated', 2);
    expect(provider.made(instance)).toBe(2);
    await after.remove('rotated');
    await after.gone('rotated');
    await core.deleteNamespacedSecret(SECRET);
  },
);
