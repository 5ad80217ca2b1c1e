import { describe, expect, test } from 'vitest';
import type { Provider } from '../../../activities/providers/contract.ts';
import { ProviderError } from '../../../model/instance.ts';
import type { FaultRule } from '../../fakes/compute-engine/index.ts';
import { errorClass, never, untilState } from './conformance.ts';
import { gcpRequest, gcpWorld, ZONE } from './gcp-world.ts';

const a = gcpRequest('a');

const failureOf = async (call: Promise<unknown>): Promise<ProviderError> => {
  const error = await call.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ProviderError);
  return error as ProviderError;
};

async function untilGone(provider: Provider, ref = a): Promise<void> {
  await expect.poll(() => errorClass(provider.get(ref, never())).catch(() => 'there')).toBe('NotFound');
}

describe('what a call asks of Compute Engine', () => {
  test('a whole life is one insert, the looks, and one delete: no more', async () => {
    const { engine, start } = await gcpWorld({ settings: { insertMillis: 0, deleteMillis: 0 } });
    const provider = await start();
    const { providerID } = await provider.create(a, never());
    const ref = { ...a, providerID };
    expect((await provider.get(ref, never())).state).toBe('Running');
    // A deletion, as the workflow does it: a look, the delete, and a look at what is left.
    await provider.get(ref, never());
    expect(await provider.delete(ref, never())).toBe('deleting');
    expect(await errorClass(provider.get(ref, never()))).toBe('NotFound');
    // The operations are asked once, of the VM that is gone: another worker might have begun to make the next one.
    expect(engine.state().calls).toEqual({
      'instances.insert': 1,
      'instances.get': 3,
      'instances.delete': 1,
      'zoneOperations.list': 1,
    });
  });

  test('while a deletion takes its time, it is asked for once', async () => {
    const { engine, start } = await gcpWorld({ settings: { insertMillis: 0, deleteMillis: 150 } });
    const provider = await start();
    const { providerID } = await provider.create(a, never());
    const ref = { ...a, providerID };
    await expect
      .poll(async () => {
        const left = await provider.get(ref, never()).then(
          () => provider.delete(ref, never()),
          () => 'gone',
        );
        return left;
      })
      .toBe('gone');
    expect(engine.state().calls['instances.delete']).toBe(1);
  });

  test('a VM gets what the placement, the defaults and the configuration say, and no rights', async () => {
    const { engine, start } = await gcpWorld();
    const provider = await start({
      defaults: { zone: ZONE, network: 'egress', subnetwork: 'egress-eu', diskGB: 20, diskType: 'pd-balanced' },
      labels: { team: 'crawling', tier: 'one' },
      tags: ['egress-proxy'],
      spot: true,
    });
    const { zone: _, ...placement } = { ...a.placement, labels: { tier: 'two' } };
    await provider.create({ ...a, placement, cloudInit: '#cloud-config\n' }, never());
    const resource = engine.machine(ZONE, a.name)?.resource;
    expect(resource).toMatchObject({
      machineType: `zones/${ZONE}/machineTypes/e2-micro`,
      labels: {
        'proxy-operator-uid': 'a',
        'proxy-operator-provider': 'gcp',
        'proxy-operator-spec-hash': 'hash-of-a',
        'proxy-operator-namespace': 'default',
        team: 'crawling',
        tier: 'two',
      },
      tags: { items: ['egress-proxy'] },
      networkInterfaces: [
        { network: 'global/networks/egress', subnetwork: 'regions/europe-west1/subnetworks/egress-eu' },
      ],
      shieldedInstanceConfig: { enableSecureBoot: true, enableVtpm: true, enableIntegrityMonitoring: true },
      scheduling: { provisioningModel: 'SPOT', instanceTerminationAction: 'STOP' },
      disks: [{ boot: true, autoDelete: true, initializeParams: { diskSizeGb: '20' } }],
    });
    expect(resource).not.toHaveProperty('serviceAccounts');
    expect(resource?.metadata.items).toEqual([
      { key: 'proxy-operator-proxy', value: 'default/a' },
      { key: 'user-data', value: '#cloud-config\n' },
    ]);
  });

  test('reserved addresses are given out one per VM, and when all are in use, it waits as for a quota', async () => {
    const { engine, start } = await gcpWorld({ settings: { insertMillis: 0 } });
    for (const [name, address] of Object.entries({ one: '192.0.2.1', two: '192.0.2.2', other: '192.0.2.3' })) {
      engine.admin('addresses', { region: 'europe-west1', name, address });
    }
    const provider = await start({ externalAddress: { static: ['one', 'two'] } });
    const made = [];
    for (const uid of ['a', 'b']) made.push(await provider.create(gcpRequest(uid), never()));
    const running = await Promise.all(made.map((ref) => untilState(provider, ref, 'Running')));
    expect(running.map(({ ip }) => ip).sort()).toEqual(['192.0.2.1', '192.0.2.2']);
    expect(await errorClass(provider.create(gcpRequest('c'), never()))).toBe('QuotaExceeded');
    const none = await start({ externalAddress: { static: ['nowhere'] } });
    expect(await errorClass(none.create(gcpRequest('c'), never()))).toBe('Permanent');
  });
});

describe('how a VM is', () => {
  test('RUNNING without a natIP is not running yet', async () => {
    const { engine, start } = await gcpWorld({ settings: { insertMillis: 0, natMillis: null } });
    const provider = await start();
    await provider.create(a, never());
    expect(await provider.get(a, never())).toMatchObject({ state: 'Provisioning', reason: 'it has no address yet' });
    expect(engine.machine(ZONE, a.name)?.resource.status).toBe('RUNNING');
  });

  test('without external addresses, the internal one counts', async () => {
    const { start } = await gcpWorld({ settings: { insertMillis: 0 } });
    const provider = await start({ externalAddress: 'none' });
    await provider.create(a, never());
    expect(await provider.get(a, never())).toMatchObject({ state: 'Running', ip: expect.stringMatching(/^10\.128\./) });
  });

  test.each([
    ['STAGING', 'Provisioning'],
    ['REPAIRING', 'Provisioning'],
    ['STOPPING', 'Stopped'],
    ['TERMINATED', 'Stopped'],
    ['SUSPENDED', 'Stopped'],
    ['PENDING_STOP', 'Stopped'],
    ['A_STATUS_OF_NEXT_YEAR', 'Stopped'],
  ])('%s is %s', async (status, state) => {
    const { engine, start } = await gcpWorld({ settings: { insertMillis: 0 } });
    const provider = await start();
    await provider.create(a, never());
    const machine = engine.machine(ZONE, a.name);
    if (machine) machine.resource.status = status;
    expect(await provider.get(a, never())).toMatchObject({ state, reason: `it is ${status}` });
  });

  test('a preempted Spot VM is Stopped, and says so', async () => {
    const { engine, start } = await gcpWorld({ settings: { insertMillis: 0 } });
    const provider = await start({ spot: true });
    await provider.create(a, never());
    engine.admin('preempt', { zone: ZONE, name: a.name });
    expect(await provider.get(a, never())).toMatchObject({
      state: 'Stopped',
      reason: 'it is TERMINATED, maybe preempted: it is a Spot VM',
    });
  });
});

describe('when something goes wrong', () => {
  test('an insert whose answer was lost is found by the next create, with what it was made from', async () => {
    const { engine, start } = await gcpWorld();
    const provider = await start();
    engine.faults.add({ call: 'instances.insert', effect: { kind: 'lost' } });
    expect(await errorClass(provider.create(a, never()))).toBe('Transient');
    expect(await provider.create({ ...a, specHash: 'edited' }, never())).toMatchObject({ specHash: 'hash-of-a' });
    expect(engine.state().inserts).toEqual({ [a.name]: 1 });
  });

  test("somebody else's VM of our name is named, not adopted, and left alone", async () => {
    const { engine, start } = await gcpWorld();
    const provider = await start();
    engine.admin('strangers', { zone: ZONE, name: a.name });
    const error = await failureOf(provider.create(a, never()));
    expect(error).toMatchObject({ class: 'Permanent' });
    expect(error.message).toContain(`${a.name} in zone ${ZONE} of project test-project is not one of ours`);
    expect(await provider.delete(a, never())).toBe('gone');
    expect(engine.state().instances).toHaveLength(1);
    expect((await provider.list(never())).instances).toEqual([]);
  });

  test('all that a placement lacks is named together', async () => {
    const provider = await (await gcpWorld()).start();
    const error = await failureOf(provider.create({ ...a, placement: { labels: { Bad: 'x', ok: 'Y' } } }, never()));
    expect(error.class).toBe('Permanent');
    for (const field of ['zone is missing', 'machineType is missing', 'image is missing', 'labels.Bad', 'labels.ok']) {
      expect(error.message).toContain(`spec.placement.${field}`);
    }
    const taken = { ...a.placement, labels: { 'proxy-operator-uid': 'b' } };
    expect((await failureOf(provider.create({ ...a, placement: taken }, never()))).class).toBe('Permanent');
  });

  const error = (status: number, reason: string, more = {}): FaultRule['effect'] => ({
    kind: 'error',
    status,
    reason,
    message: 'as injected',
    ...more,
  });
  test.each<[FaultRule['effect'], object]>([
    [error(403, 'rateLimitExceeded', { retryAfter: 7 }), { class: 'RateLimited', retryAfterMillis: 7_000 }],
    [error(403, 'userRateLimitExceeded'), { class: 'RateLimited', retryAfterMillis: undefined }],
    [error(429, 'rateLimitExceeded', { retryAfter: 0 }), { class: 'RateLimited', retryAfterMillis: 0 }],
    [error(403, 'quotaExceeded'), { class: 'QuotaExceeded' }],
    [error(503, 'ZONE_RESOURCE_POOL_EXHAUSTED'), { class: 'QuotaExceeded' }],
    [error(403, 'forbidden'), { class: 'Permanent' }],
    [error(403, 'accessNotConfigured'), { class: 'Permanent' }],
    [error(401, 'authError'), { class: 'Permanent' }],
    [error(400, 'invalid'), { class: 'Permanent' }],
    [error(412, 'conditionNotMet'), { class: 'Permanent' }],
    [error(404, 'notFound'), { class: 'Permanent' }],
    [error(400, 'resourceNotReady'), { class: 'Transient' }],
    [error(408, 'timeout'), { class: 'Transient' }],
    [error(500, 'backendError'), { class: 'Transient' }],
    [error(503, 'backendError'), { class: 'Transient' }],
    [{ kind: 'cut' }, { class: 'Transient' }],
  ])('a create that meets %j', async (effect, expected) => {
    const { engine, start } = await gcpWorld();
    const provider = await start();
    engine.faults.add({ call: 'instances.insert', effect });
    const failure = await failureOf(provider.create(a, never()));
    expect(failure).toMatchObject(expected);
    expect(failure.message).toContain(a.name);
    expect(failure.cause).toBeUndefined();
    expect(engine.state().calls).toEqual({ 'instances.insert': 1 });
  });

  test('a project that is not there says nothing of its VMs', async () => {
    const provider = await (await gcpWorld()).start({ projectId: 'another-project' });
    const failure = await failureOf(provider.get(a, never()));
    expect(failure.class).toBe('Permanent');
    expect(failure.message).toContain("'projects/another-project' was not found");
  });

  test('cloud-init is not repeated when the API refuses it', async () => {
    const { start } = await gcpWorld();
    const provider = await start();
    const failure = await failureOf(provider.create({ ...a, cloudInit: 'top-secret\0text' }, never()));
    expect(failure.class).toBe('Permanent');
    expect(failure.message).toContain('metadata.items[1].value');
    expect(failure.message).not.toContain('top-secret');
    const large = await failureOf(provider.create({ ...a, cloudInit: 'x'.repeat(300_000) }, never()));
    expect(large).toMatchObject({ class: 'Permanent', message: expect.stringContaining('larger than 262144 bytes') });
  });

  test('a cancelled call ends its request as well', async () => {
    const { engine, start } = await gcpWorld();
    const provider = await start();
    engine.faults.add({ call: 'instances.get', effect: { kind: 'delay', millis: 60_000 } });
    const before = performance.now();
    const failure = await failureOf(provider.get(a, AbortSignal.timeout(100)));
    expect(failure.class).toBe('Transient');
    expect(performance.now() - before).toBeLessThan(5_000);
  });

  test('a deletion whose operation fails is asked for again', async () => {
    const { engine, start } = await gcpWorld({ settings: { insertMillis: 0, deleteMillis: 0 } });
    const provider = await start();
    await provider.create(a, never());
    engine.faults.add({
      call: 'instances.delete',
      effect: { kind: 'operationError', code: 'INTERNAL_ERROR', status: 500, message: '' },
    });
    expect(await provider.delete(a, never())).toBe('deleting');
    expect((await provider.get(a, never())).state).toBe('Running');
    expect(await provider.delete(a, never())).toBe('deleting');
    await untilGone(provider);
  });
});

describe('a list', () => {
  test('has all pages, and only the VMs of this provider', async () => {
    const { start } = await gcpWorld({ settings: { insertMillis: 0, pageSize: 3 } });
    const [provider, other] = [await start(), await start({ name: 'other' })];
    const zones = ['europe-west1-b', 'europe-west1-c', 'us-central1-a'];
    const requests = Array.from({ length: 10 }, (_, i) =>
      gcpRequest(`p${i}`, { placement: { ...a.placement, zone: zones[i % 3] as string } }),
    );
    await Promise.all(requests.map((request) => provider.create(request, never())));
    await other.create(a, never());
    const { instances, unreachable } = await provider.list(never());
    expect(instances.map(({ uid }) => uid).sort()).toEqual(requests.map(({ uid }) => uid).sort());
    expect(unreachable).toEqual([]);
    for (const { providerID, uid, state, createdAt } of instances) {
      expect(await provider.get({ name: '', uid, providerID }, never())).toMatchObject({ state, createdAt });
    }
  });

  test('names the zones that did not answer, and still has the others', async () => {
    const { engine, start } = await gcpWorld({ settings: { insertMillis: 0 } });
    const provider = await start();
    await provider.create(a, never());
    await provider.create(gcpRequest('b', { placement: { ...a.placement, zone: 'us-central1-a' } }), never());
    engine.settings.unreachableZones = ['us-central1-a', 'us-central1-b'];
    expect(await provider.list(never())).toMatchObject({
      instances: [{ uid: 'a' }],
      unreachable: ['zones/us-central1-a', 'zones/us-central1-b'],
    });
    const lost = { name: gcpRequest('b').name, uid: 'b' };
    expect(await errorClass(provider.get(lost, never()))).toBe('Transient');
  });

  test('can be the first call that a worker makes', async () => {
    const { start } = await gcpWorld();
    expect(await (await start()).list(never())).toEqual({ instances: [], unreachable: [] });
  });

  test('that lags behind takes nothing from what a look says', async () => {
    const { start } = await gcpWorld({ settings: { insertMillis: 0, listLagMillis: 60_000 } });
    const provider = await start();
    await provider.create(a, never());
    expect((await provider.list(never())).instances).toEqual([]);
    expect(await provider.get(a, never())).toMatchObject({ state: 'Running' });
    expect(await provider.create(a, never())).toMatchObject({ state: 'Running' });
  });
});
