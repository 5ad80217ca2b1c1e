import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Proxy } from '../../model/proxy.ts';
import { inPhase, instanceOf, PROBED_OFTEN, readyAt } from './fleet.ts';
import { seriesWith } from './metrics.ts';
import { processesThatMention } from './processes.ts';
import { newSandboxFolder, removeSandboxFolder, startSandbox } from './sandbox.ts';
import { squidsOf } from './squids.ts';
import { openWorld, type World } from './world.ts';

/** Failures in a row that the streak needs. The last heartbeat before a kill may be some two probes old. */
const THRESHOLD = 7;
const NAMES = ['calm-1', 'calm-2', 'calm-3'];

/** One state folder for all tests, in which sandboxes come and go. */
const dir = newSandboxFolder('restart');
let clients = new AsyncDisposableStack();
let world: World;

async function start(): Promise<void> {
  const sandbox = await startSandbox(dir);
  clients = new AsyncDisposableStack();
  clients.defer(() => sandbox.stop());
  world = await openWorld(sandbox, clients);
}

beforeAll(async () => {
  await start();
  const created = await Promise.all(
    NAMES.map((name) => world.fleet.create(name, { provider: 'local', health: PROBED_OFTEN, attributes: { name } })),
  );
  await Promise.all(created.map((proxy) => world.fleet.until(proxy.metadata.name, readyAt(proxy))));
});

afterAll(async () => {
  await clients.disposeAsync();
  removeSandboxFolder(dir);
});

const current = (name: string): Proxy => {
  const proxy = world.fleet.watch.current(name);
  if (!proxy) throw new Error(`${name} is not there`);
  return proxy;
};

/** What a restart must not change: who the proxies are, where they answer, and how often they were made. */
const identities = () =>
  NAMES.map(current).map(({ metadata: { uid }, status }) => {
    const { ip, port, providerID, incarnation } = status ?? {};
    return { uid, ip, port, providerID, incarnation };
  });

/** Waits until the orchestrator of now has probed each of them twice: it has seen all it needs to make a mistake. */
async function probedAgain(): Promise<void> {
  for (const name of NAMES) {
    const counts = () =>
      seriesWith(world.settings.METRICS, 'healthcheck_duration_seconds_count', `"default/${name}"`).catch(
        () => new Map(),
      );
    await vi.waitFor(async () => expect([...(await counts()).values()][0]).toBeGreaterThanOrEqual(2), {
      timeout: 40_000,
      interval: 200,
    });
  }
}

const expectNeverLeftReady = () =>
  expect(NAMES.flatMap((name) => phasesOf(name)).filter((phase) => phase !== 'Ready')).toEqual([]);

/** Since the first time that it was Ready. */
const phasesOf = (name: string) => {
  const phases = world.fleet.watch.versions(name).map(({ status }) => status?.phase);
  return phases.slice(phases.indexOf('Ready'));
};

async function lease(name: string): Promise<string> {
  const answer = await world.leases.take({ selector: { name }, ttlSeconds: 600 });
  expect(answer.status).toBe(201);
  return answer.body.leaseID ?? '';
}

async function expectStillLeased(name: string, leaseID: string): Promise<void> {
  await vi.waitFor(async () => {
    const renewed = await world.leases.renew(leaseID, 600);
    expect(renewed).toMatchObject({ status: 200, body: { leaseID, proxy: { name } } });
  });
  expect(await world.leases.take({ selector: { name } })).toMatchObject({ status: 409, body: { atCapacity: 1 } });
}

/** Kills a part of the sandbox at once and waits until its supervisor has brought it back. */
async function killPart(part: string): Promise<void> {
  const { pid } = JSON.parse(readFileSync(join(dir, 'run', `${part}.json`), 'utf8')) as { pid: number };
  const before = world.sandbox.output().length;
  process.kill(pid, 'SIGKILL');
  await vi.waitFor(() => expect(world.sandbox.output().slice(before)).toContain(`${part} is up again`), {
    timeout: 60_000,
  });
}

test('after kill -9 the orchestrator finds Squids, leases and failure streaks as they were, and nothing flaps', async () => {
  const { fleet, sandbox, settings } = world;
  const health = { ...PROBED_OFTEN, failureThreshold: THRESHOLD };
  const created = await fleet.create('streak', { provider: 'local', health });
  await fleet.until('streak', readyAt(created));
  const squids = squidsOf(sandbox.hostState);
  const before = identities();
  const leaseID = await lease('calm-1');
  const failures = async () =>
    [...(await seriesWith(settings.METRICS, 'healthcheck_failures_total', '"default/streak"')).values()][0];
  await fleet.edit('streak', { health: { url: `${settings.PROBE_TARGET_HTTP}status/503` } });
  await vi.waitFor(async () => expect(await failures()).toBeGreaterThanOrEqual(THRESHOLD - 2), { timeout: 30_000 });

  await killPart('orchestrator');
  await expectStillLeased('calm-1', leaseID);
  await fleet.until('streak', inPhase('Unhealthy'));
  // Fewer than the threshold: the rest was counted by the process that was killed.
  expect(await failures()).toBeLessThan(THRESHOLD);
  await probedAgain();
  expect(identities()).toEqual(before);
  expect(squidsOf(sandbox.hostState)).toEqual(squids);
  expectNeverLeftReady();
  await fleet.remove('streak');
  await fleet.gone('streak');
});

test('after Ctrl-C a second start goes on with the same proxies, workflows and leases', async () => {
  const before = identities();
  const leaseID = await lease('calm-2');
  const firstRuns = () =>
    Promise.all(
      NAMES.map(async (name) => {
        const { raw, status } = await world.workflowOf(current(name)).describe();
        return { status: status.name, firstRun: raw.workflowExecutionInfo?.firstRunId };
      }),
    );
  const workflows = await firstRuns();
  expect(workflows.map(({ status }) => status)).toEqual(['RUNNING', 'RUNNING', 'RUNNING']);

  await clients.disposeAsync();
  expect(processesThatMention(dir)).toEqual([]);
  await start();
  expect(NAMES.map((name) => current(name).status?.phase)).toEqual(['Ready', 'Ready', 'Ready']);
  await expectStillLeased('calm-2', leaseID);
  await probedAgain();
  expect(identities()).toEqual(before);
  expect(await firstRuns()).toEqual(workflows);
  expectNeverLeftReady();
  const squids = squidsOf(world.sandbox.hostState);
  expect([...squids].map(([name, pids]) => [name, pids.length])).toEqual(
    expect.arrayContaining(NAMES.map((name) => [instanceOf(current(name)), 1])),
  );
  expect(squids.size).toBe(NAMES.length);
});

test.each([
  ['temporal', 3301],
  ['kube-apiserver', 3302],
  ['etcd', 3303],
])('after kill -9 of %s leases go on being granted, and an edit made afterwards is acted on', async (part, port) => {
  const { fleet, leases, sandbox } = world;
  const killed = killPart(part);
  const granted = await leases.take({ selector: { name: 'calm-3' }, ttlSeconds: 60 });
  expect(granted.status).toBe(201);
  await leases.release(granted.body.leaseID ?? '');
  await killed;
  const edited = await vi.waitFor(() => fleet.edit('calm-3', { port }), { timeout: 30_000 });
  const ready = await fleet.until('calm-3', readyAt(edited));
  expect(ready.status?.port).toBe(port);
  expect([...squidsOf(sandbox.hostState).values()].map(({ length }) => length)).toEqual([1, 1, 1]);
});
