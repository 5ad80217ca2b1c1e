import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, it } from 'vitest';
import { createGcpProvider, gcpConfig } from '../../activities/providers/gcp/index.ts';
import { obtainParts } from '../../deploy/sandbox/parts.ts';
import type { ManagedSpec } from '../../model/proxy.ts';
import { onEngine, PLACEMENT, ZONE } from '../activities/providers/gcp-world.ts';
import { startComputeEngine } from '../fakes/compute-engine/index.ts';
import type { Fault } from '../integration/scripted-provider.ts';
import { type System, startSystem } from '../integration/system.ts';
import { type RealServers, startRealServers } from '../setup/real-servers.ts';

/**
 * Records how workflows live today, one file per run, into a folder named after the day. What was recorded before stays:
 * workflows that were started by any released version must still replay.
 */
const folder = join(import.meta.dirname, new Date().toISOString().slice(0, 10));
const SPEC: ManagedSpec = { provider: 'scripted' };
const execute = promisify(execFile);
const { temporal } = await obtainParts({ only: ['temporal'] });

let servers: RealServers;
let system: System;
beforeAll(async () => {
  mkdirSync(folder, { recursive: true });
  // Low enough for a run to continue as new within a short life.
  servers = await startRealServers({ temporalConfig: { 'limit.historyCount.suggestContinueAsNew': 200 } });
  system = await startSystem(servers);
});
afterAll(async () => {
  await system?.stop();
  await servers?.stop();
});

async function record(path: string, workflowId: string): Promise<void> {
  let number = 0;
  for await (const { runId } of system.client.workflow.list({ query: `WorkflowId = '${workflowId}'` })) {
    number += 1;
    const { stdout } = await execute(temporal, [
      ...['workflow', 'show', '--workflow-id', workflowId, '--run-id', runId],
      ...['--output', 'json', '--address', servers.temporalAddress],
    ]);
    writeFileSync(join(folder, `${path}-${number}.json`), scrubbed(stdout));
  }
}

/** Without what is of the machine that recorded it: paths in stack traces, and the host in the names of workers. */
const scrubbed = (history: string): string =>
  history.replaceAll(join(import.meta.dirname, '../..'), '').replaceAll(hostname(), 'recorder');

async function remove(name: string): Promise<void> {
  await system.remove(name);
  await system.gone(name);
}

/** A Proxy whose provider calls go wrong from the first. */
async function applyFaulty(name: string, faults: Fault[]) {
  const applied = await system.apply(name, { ...SPEC, cloudInit: { secretRef: { name: 'absent', key: 'absent' } } });
  system.provider.fail(applied.instance, 'create', faults, 'for ever');
  await system.patch(name, { spec: { cloudInit: null } });
  return applied;
}

it('create, replace after an edit, replace on demand, stopped, delete', async () => {
  const { workflow, instance } = await system.apply('life', SPEC);
  await system.ready('life', 1);
  system.provider.linger(2);
  await system.patch('life', { spec: { port: 3200 } });
  await system.ready('life', 2);
  await system.client.workflow.getHandle(workflow).executeUpdate('replace');
  await system.ready('life', 3);
  system.provider.set(instance, { state: 'Stopped' });
  await system.patch('life', { spec: { attributes: { touched: 'yes' } } });
  await system.ready('life', 4);
  await remove('life');
  system.provider.linger(1);
  await record('life', workflow);
});

it('slow to come up', async () => {
  system.provider.begin('Provisioning');
  const { workflow, instance } = await system.apply('slow', SPEC);
  await system.provisioned('slow', 'False/Provisioning');
  system.provider.begin('Running');
  system.provider.set(instance, { state: 'Running' });
  await system.ready('slow');
  await remove('slow');
  await record('slow', workflow);
});

it.each<[string, Fault[], string]>([
  ['quota', ['QuotaExceeded'], 'False/QuotaExceeded'],
  ['rate-limit', ['RateLimited'], 'False/RateLimited'],
  ['permanent', ['Permanent'], 'False/PermanentError'],
  ['lost-answer', ['lost', 'Transient'], 'Unknown/TransientError'],
])('%s', async (name, faults, said) => {
  const { workflow, instance } = await applyFaulty(name, faults);
  await system.provisioned(name, said);
  system.provider.heal(instance);
  await system.patch(name, { spec: { port: 3201 } });
  await system.ready(name);
  await remove(name);
  await record(name, workflow);
});

it('deletion that is refused at first', async () => {
  const { workflow, instance } = await system.apply('stubborn', SPEC);
  await system.ready('stubborn');
  system.provider.fail(instance, 'delete', ['Permanent'], 'for ever');
  await system.remove('stubborn');
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  system.provider.heal(instance);
  await system.gone('stubborn');
  await record('stubborn', workflow);
});

it('external', async () => {
  const { workflow } = await system.apply('external', { mode: 'External', endpoint: { host: '127.99.9.9' } });
  await system.ready('external');
  await remove('external');
  await record('external', workflow);
});

it('continue as new', async () => {
  const { workflow } = await system.apply('long', SPEC);
  await system.ready('long');
  for (let edit = 1; edit <= 6; edit += 1) {
    await system.patch('long', { spec: { port: 3300 + edit } });
    await system.ready('long', 1 + edit);
  }
  await remove('long');
  await record('continue-as-new', workflow);
});

it('probes', () => record('probes', 'probes'));

it('zones: a stockout, and a lost create before an edit of the zone', async () => {
  const engine = await startComputeEngine({ settings: { insertMillis: 200, natMillis: 50, deleteMillis: 200 } });
  const provider = await createGcpProvider(gcpConfig.parse(onEngine(engine)));
  await system.stop();
  system = await startSystem(servers, { serve: { name: 'gcp', provider, zonal: {} } });
  try {
    engine.settings.stockouts = { [ZONE]: 'ZONE_RESOURCE_POOL_EXHAUSTED' };
    const placement = { ...PLACEMENT, zones: ['europe-west1-c'] };
    const { workflow } = await system.apply('zones', { provider: 'gcp', placement });
    await system.ready('zones');
    engine.faults.add({ call: 'instances.insert', effect: { kind: 'lost' } });
    engine.faults.add({ call: 'instances.get', zone: 'us-central1-a', times: 6, effect: { kind: 'cut' } });
    await system.patch('zones', { spec: { placement: { zone: 'us-central1-a', zones: null } } });
    await system.provisioned('zones', 'Unknown/TransientError');
    await system.patch('zones', { spec: { placement: { zone: 'us-central1-f' } } });
    await system.ready('zones');
    await remove('zones');
    await record('zones', workflow);
  } finally {
    await engine.close();
  }
});
