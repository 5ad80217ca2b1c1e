import { ScheduleOverlapPolicy } from '@temporalio/client';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { conditionOf } from '../../model/condition.ts';
import type { Proxy } from '../../model/proxy.ts';
import { instanceOf, PROBED_OFTEN, readyAt } from './fleet.ts';
import { createKubectl } from './kubectl.ts';
import { seriesWith } from './metrics.ts';
import { type Orchestrator, orchestratorEnv, runOrchestrator } from './orchestrator.ts';
import { squidOf, squidsOf } from './squids.ts';
import { sandboxOfThisFile } from './world.ts';

const PATIENCE = { timeout: 60_000, interval: 100 };
const INTERVALS = { DRIFT_INTERVAL: '2s', SWEEP_INTERVAL: '4s', GC_MIN_AGE: '3s' };
/** So that nothing but a sweep can find out. */
const PROBED_ONCE_AN_HOUR = { intervalSeconds: 3600, timeoutSeconds: 1 };

const world = sandboxOfThisFile('sweeps', { script: 'test/e2e/sandbox-without-orchestrator.ts' });
let env: Record<string, string>;
let orchestrator: Orchestrator;

beforeAll(async () => {
  env = { ...(await orchestratorEnv(world().sandbox)), ...INTERVALS };
  orchestrator = runOrchestrator([], env);
  await orchestrator.ready();
});
afterAll(async () => {
  orchestrator?.kill('SIGTERM');
  await orchestrator?.exited;
});

async function create(name: string, health: object = PROBED_ONCE_AN_HOUR): Promise<Proxy> {
  const proxy = await world().fleet.create(name, { provider: 'local', health });
  return await world().fleet.until(name, readyAt(proxy));
}

const schedule = (id: string) => world().histories.client.schedule.getHandle(id);

test('a machine that dies in silence is replaced by the drift sweep, and no other is touched', async () => {
  const { fleet, sandbox } = world();
  const [dead, alive] = [await create('dead'), await create('alive')];
  const kept = squidOf(sandbox.hostState, instanceOf(alive));
  process.kill(squidOf(sandbox.hostState, instanceOf(dead)), 'SIGKILL');
  await fleet.until('dead', ({ status }) => status?.incarnation === 2 && status.phase === 'Ready');
  expect(squidOf(sandbox.hostState, instanceOf(alive))).toBe(kept);
  expect(fleet.watch.current('alive')?.status?.incarnation).toBe(1);
});

test('a machine whose Proxy is gone is deleted, loudly, and its ProviderHealth tells', async () => {
  const { fleet, sandbox, settings } = world();
  const lost = await create('lost');
  const instance = instanceOf(lost);
  const kubectl = await createKubectl(settings.KUBECONFIG);
  // What a crash after a create leaves behind: nobody knows of the machine any more.
  await world().workflowOf(lost).terminate('lost for the test');
  await kubectl(['patch', 'px', 'lost', '--type=merge', '-p', '{"metadata":{"finalizers":[]}}']);
  await fleet.remove('lost').catch(() => {});
  await vi.waitFor(() => expect([...squidsOf(sandbox.hostState).keys()]).not.toContain(instance), PATIENCE);
  expect(orchestrator.output()).toContain('DELETING AN ORPHAN');
  expect(orchestrator.output()).toContain(`"uid":"${lost.metadata.uid}"`);
  await vi.waitFor(async () => {
    const metrics = env.METRICS_ADDRESS ? `http://${env.METRICS_ADDRESS}/metrics` : '';
    // Counted when the provider has answered, which is a moment after the process is gone.
    expect([...(await seriesWith(metrics, 'orphans_deleted_total')).values()]).toEqual([1]);
    const columns = (await kubectl(['get', 'providerhealths', 'local', '--no-headers'])).split(/\s+/);
    expect(columns.slice(0, 5)).toEqual(['local', 'True', 'Available', '2', '0']);
  }, PATIENCE);
});

describe('schedules', () => {
  test('there is one of each kind per provider, and one that trims leases; runs never overlap', async () => {
    for (const id of ['sweep/local', 'drift/local', 'trim-leases']) {
      const { policies } = await schedule(id).describe();
      expect(policies.overlap).toBe(ScheduleOverlapPolicy.SKIP);
    }
  });

  test("a person's pause survives a restart with other intervals; a schedule whose provider left is removed", async () => {
    const { client } = world().histories;
    await schedule('sweep/local').pause('by a person');
    const { spec, action, policies } = await schedule('drift/local').describe();
    const options = { spec, action: { ...action, workflowId: 'gone' }, policies } as object;
    await client.schedule.create({ ...options, scheduleId: 'sweep/gone' } as never);
    orchestrator.kill('SIGTERM');
    await orchestrator.exited;
    orchestrator = runOrchestrator([], { ...env, SWEEP_INTERVAL: '5s' });
    await orchestrator.ready();
    await vi.waitFor(async () => {
      const { state, spec: now } = await schedule('sweep/local').describe();
      expect(state.paused).toBe(true);
      expect(now.intervals?.[0]?.every).toBe(5_000);
      await expect(schedule('sweep/gone').describe()).rejects.toThrow();
    }, PATIENCE);
    expect(orchestrator.output()).toContain('removing a schedule whose provider left the configuration');
  });
});

test('while the target of most of the fleet is down, verdicts hold: proxies stay Ready and leased, and say why', async () => {
  const { fleet, settings } = world();
  const names = ['fleet-1', 'fleet-2', 'fleet-3', 'fleet-4'];
  for (const name of names) await create(name, { ...PROBED_OFTEN, failureThreshold: 3 });
  const healthyReason = (name: string) => conditionOf(fleet.watch.current(name)?.status?.conditions, 'Healthy')?.reason;
  const down = async () => [
    ...(await seriesWith(`http://${env.METRICS_ADDRESS}/metrics`, 'probe_target_down{')).values(),
  ];
  try {
    await request(`${settings.PROBE_TARGET_HTTP}down`, { method: 'POST' });
    await vi.waitFor(() => expect(names.map(healthyReason)).toEqual(names.map(() => 'TargetDown')), PATIENCE);
    expect(await down()).toEqual([1]);
  } finally {
    await request(`${settings.PROBE_TARGET_HTTP}up`, { method: 'POST' });
  }
  await vi.waitFor(() => expect(names.map(healthyReason)).toEqual(names.map(() => 'ProbeSucceeded')), PATIENCE);
  expect(await down()).toEqual([0]);
  const phases = names.flatMap((name) => fleet.watch.versions(name).map(({ status }) => status?.phase));
  expect(phases).not.toContain('Unhealthy');
});
