import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { createGcpProvider, gcpConfig } from '../../activities/providers/gcp/index.ts';
import { onEngine, PLACEMENT, ZONE } from '../activities/providers/gcp-world.ts';
import { type ComputeEngine, startComputeEngine } from '../fakes/compute-engine/index.ts';
import { type System, startSystem } from './system.ts';

const NEXT = 'europe-west1-c';

let engine: ComputeEngine;
let system: System;

beforeAll(async () => {
  engine = await startComputeEngine({ settings: { insertMillis: 200, natMillis: 50, deleteMillis: 200 } });
  const provider = await createGcpProvider(gcpConfig.parse(onEngine(engine)));
  system = await startSystem(
    { kubeconfig: inject('kubeconfig'), temporalAddress: inject('temporalAddress') },
    { serve: { name: 'gcp', provider, zonal: {} }, timing: { provisioningTimeout: 60_000, quotaRetry: 600_000 } },
  );
});
afterAll(async () => {
  await system?.stop();
  await engine?.close();
});

test('a stockout: the VM is made in the next zone, which the status names before, during and after', async () => {
  engine.settings.stockouts = { [ZONE]: 'ZONE_RESOURCE_POOL_EXHAUSTED' };
  const { instance } = await system.apply('zones', {
    provider: 'gcp',
    placement: { ...PLACEMENT, zones: [NEXT] },
  });
  const named = new Set<string | undefined>();
  const unnamed = new Set<string>();
  const ready = await vi.waitFor(
    async () => {
      const { instances } = engine.state();
      const proxy = await system.read('zones');
      named.add(proxy.status?.zone);
      for (const { zone } of instances) if (!named.has(zone)) unnamed.add(zone);
      expect(proxy.status?.phase).toBe('Ready');
      return proxy;
    },
    { timeout: 40_000, interval: 20 },
  );
  expect([...unnamed], 'zones with a VM before the status named them').toEqual([]);
  expect(named).toContain(ZONE);
  expect(ready.status).toMatchObject({
    zone: NEXT,
    providerID: `gcp://${engine.projectId}/${NEXT}/${instance}`,
    incarnation: 2,
  });
  expect(engine.state().inserts).toEqual({ [instance]: 2 });

  await system.patch('zones', { spec: { placement: { zones: [NEXT, 'us-central1-a'] } } });
  await vi.waitFor(async () => {
    const { metadata, status } = await system.read('zones');
    expect(status?.observedGeneration).toBe(metadata.generation);
  });
  expect(engine.state().inserts).toEqual({ [instance]: 2 });
});

test('an edit of the zone makes it anew there, and a deletion leaves nothing anywhere', async () => {
  engine.settings.stockouts = {};
  await system.patch('zones', { spec: { placement: { zone: 'us-central1-a' } } });
  const { status } = await system.ready('zones', 3);
  expect(status?.zone).toBe('us-central1-a');
  await system.remove('zones');
  await system.gone('zones');
  expect(engine.state().instances).toEqual([]);
});

test('a create whose answer is lost, then another zone: what was made is found by the zone in the status', async () => {
  // No list shows it in time.
  Object.assign(engine.settings, { listLagMillis: 60_000 });
  engine.faults.add({ call: 'instances.insert', effect: { kind: 'lost' } });
  engine.faults.add({ call: 'instances.get', zone: ZONE, times: 4, effect: { kind: 'cut' } });
  const { instance } = await system.apply('lost', { provider: 'gcp', placement: PLACEMENT });
  await vi.waitUntil(() => engine.machine(ZONE, instance) !== undefined, { timeout: 40_000 });
  await system.patch('lost', { spec: { placement: { zone: NEXT } } });
  await vi.waitFor(
    async () => {
      const { status } = await system.read('lost');
      expect(status).toMatchObject({ phase: 'Ready', zone: NEXT });
    },
    { timeout: 40_000, interval: 100 },
  );
  expect(engine.state().instances.filter(({ name }) => name === instance)).toMatchObject([{ zone: NEXT }]);
  await system.remove('lost');
  await system.gone('lost');
  expect(engine.state().instances).toEqual([]);
});
