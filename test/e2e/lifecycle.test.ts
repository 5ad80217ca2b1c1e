import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { describe, expect, test, vi } from 'vitest';
import { conditionOf } from '../../model/condition.ts';
import { FINALIZER } from '../../model/proxy.ts';
import { inPhase, instanceOf, PROBED_OFTEN, provisionedReason, readyAt } from './fleet.ts';
import { createKubectl } from './kubectl.ts';
import { seriesWith } from './metrics.ts';
import { squidOf, squidsOf } from './squids.ts';
import { clientSeenThrough } from './through-proxy.ts';
import { sandboxOfThisFile } from './world.ts';

const world = sandboxOfThisFile('lifecycle');

/** The probe target of this sandbox may have another address than that of a machine's first. */
function samples(): string {
  const sample = readFileSync(join(import.meta.dirname, '../../deploy/samples/local.yaml'), 'utf8');
  return sample.replaceAll('https://127.80.0.1:18443/', world().settings.PROBE_TARGET_HTTPS);
}

describe('the samples, from apply to delete', () => {
  test('all three become Ready, one of them probed over https, and kubectl tells their story', async () => {
    const { fleet, settings } = world();
    const kubectl = await createKubectl(settings.KUBECONFIG);
    await kubectl(['apply', '-f', '-'], samples());
    await kubectl(['wait', 'px', '--all', '--for=jsonpath={.status.phase}=Ready', '--timeout=60s']);

    const proxies = ['local-1', 'local-2', 'local-3'].map((name) => fleet.watch.current(name));
    expect(proxies.map((proxy) => proxy?.spec.health?.url?.startsWith('https:') ?? false)).toEqual([
      false,
      false,
      true,
    ]);
    expect(new Set(proxies.map((proxy) => proxy?.status?.ip)).size).toBe(3);

    const [header, ...rows] = (await kubectl(['get', 'px', '-o', 'wide'])).trimEnd().split('\n');
    expect(header?.split(/\s+/)).toEqual('NAME PHASE PROVIDER IP LATENCY AGE PROVIDERID HEALTHY'.split(' '));
    const first = proxies[0];
    const row = ['local-1', 'Ready', 'local', first?.status?.ip, expect.anything(), expect.anything()];
    expect(rows[0]?.split(/\s+/)).toEqual([...row, first?.status?.providerID, 'ProbeSucceeded']);

    const events = await kubectl(['describe', 'px', 'local-1']);
    expect(events).toMatch(/Normal\s+Created\s/);
    expect(events).toMatch(/Normal\s+ProbeSucceeded\s/);
  });

  test('a lease leads through the proxy, out of its own address, until it is banned, cools down and is released', async () => {
    const { leases, settings } = world();
    const ask = { selector: { tier: 'premium' }, target: 'shop.example', ttlSeconds: 60 };
    const granted = await leases.take(ask);
    expect(granted).toMatchObject({ status: 201, body: { proxy: { name: 'local-3' }, ttlSeconds: 60 } });
    const { leaseID = '', proxy } = granted.body;
    const url = proxy?.url ?? '';
    expect(await clientSeenThrough(url, settings.PROBE_TARGET_HTTP)).toBe(proxy?.host);
    expect(await clientSeenThrough(url, settings.PROBE_TARGET_HTTPS, settings.PROBE_TARGET_CA)).toBe(proxy?.host);

    expect(await leases.take({ ...ask, target: 'other.example' })).toMatchObject({
      status: 409,
      body: { atCapacity: 1 },
    });
    expect((await leases.report(leaseID, 'banned')).status).toBe(204);
    expect((await leases.release(leaseID)).status).toBe(204);
    expect(await leases.take(ask)).toMatchObject({
      status: 409,
      body: { error: 'no_match', considered: 1, inCooldown: 1, atCapacity: 0, unhealthy: 0 },
    });
    const elsewhere = await leases.take({ ...ask, target: 'other.example' });
    expect(elsewhere.status).toBe(201);
    await leases.release(elsewhere.body.leaseID ?? '');
  });

  test('an External proxy becomes Ready without a finalizer and without a single call to a provider', async () => {
    const { fleet, settings } = world();
    const { ip: host, port } = fleet.watch.current('local-1')?.status ?? {};
    const calls = () => seriesWith(settings.METRICS, 'provider_requests_total{');
    const before = await calls();
    expect(before.size).toBeGreaterThan(0);

    const created = await fleet.create('external', {
      mode: 'External',
      endpoint: { host, port },
      health: PROBED_OFTEN,
    });
    const ready = await fleet.until('external', readyAt(created));
    expect(ready.status).toMatchObject({ ip: host, port });
    expect(provisionedReason(ready)).toBe('ExternalEndpoint');
    await fleet.edit('external', { attributes: { country: 'it' } });
    await fleet.remove('external');
    await fleet.gone('external');

    expect(fleet.watch.versions('external').flatMap(({ metadata }) => metadata.finalizers ?? [])).toEqual([]);
    expect(await calls()).toEqual(before);
    await vi.waitFor(async () => expect((await world().workflowOf(created).describe()).status.name).toBe('COMPLETED'));
  });

  test('deleting leaves no CR, no Squid, no state, no series and no running workflow', async () => {
    const { fleet, sandbox, settings, workflowOf } = world();
    const proxy = fleet.watch.current('local-2');
    if (!proxy) throw new Error('local-2 is not there');
    expect(proxy.metadata.finalizers).toEqual([FINALIZER]);
    squidOf(sandbox.hostState, instanceOf(proxy));
    expect((await seriesWith(settings.METRICS, 'proxy="default/local-2"')).size).toBeGreaterThan(0);

    await (await createKubectl(settings.KUBECONFIG))(['delete', 'px', 'local-2', '--timeout=30s']);
    expect(squidsOf(sandbox.hostState).has(instanceOf(proxy))).toBe(false);
    expect(existsSync(join(sandbox.hostState, instanceOf(proxy)))).toBe(false);
    await vi.waitFor(async () => {
      expect([...(await seriesWith(settings.METRICS, 'proxy="default/local-2"'))]).toEqual([]);
      expect((await workflowOf(proxy).describe()).status.name).toBe('COMPLETED');
    });
  });
});

test('a provider that is not configured is a permanent error that names those that are; deleting still works', async () => {
  const { fleet } = world();
  await fleet.create('nowhere', { provider: 'mars' });
  const failed = await fleet.until('nowhere', inPhase('Failed'));
  expect(conditionOf(failed.status?.conditions, 'Provisioned')).toMatchObject({
    status: 'False',
    reason: 'PermanentError',
    message: expect.stringMatching(/"mars" is not configured \(known: local\)/),
  });
  await fleet.remove('nowhere');
  await fleet.gone('nowhere');
});

test('while the probe target is down proxies are Unhealthy after the threshold, are not replaced, and recover', async () => {
  const { fleet, sandbox, settings } = world();
  const health = { ...PROBED_OFTEN, failureThreshold: 2 };
  const created = await fleet.create('steady', { provider: 'local', health, attributes: { steady: 'yes' } });
  const ready = await fleet.until('steady', readyAt(created));
  const pid = squidOf(sandbox.hostState, instanceOf(ready));
  const failures = async () =>
    [...(await seriesWith(settings.METRICS, 'healthcheck_failures_total', '"default/steady"')).values()][0] ?? 0;
  const before = await failures();
  try {
    await request(`${settings.PROBE_TARGET_HTTP}down`, { method: 'POST' });
    const unhealthy = await fleet.until('steady', inPhase('Unhealthy'));
    expect((await failures()) - before).toBeGreaterThanOrEqual(2);
    expect(conditionOf(unhealthy.status?.conditions, 'Healthy')?.message).toContain('503');
    expect(await world().leases.take({ selector: { steady: 'yes' } })).toMatchObject({ body: { unhealthy: 1 } });
    // Time enough for whoever would replace it to do so.
    await vi.waitFor(async () => expect((await failures()) - before).toBeGreaterThanOrEqual(4), { timeout: 15_000 });
  } finally {
    await request(`${settings.PROBE_TARGET_HTTP}up`, { method: 'POST' });
  }
  await fleet.until('steady', inPhase('Ready'));
  expect(squidOf(sandbox.hostState, instanceOf(ready))).toBe(pid);
  expect(new Set(fleet.watch.versions('steady').map(({ status }) => status?.incarnation ?? 0))).toEqual(
    new Set([0, 1]),
  );
});
