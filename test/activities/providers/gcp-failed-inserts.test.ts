import { describe, expect, test } from 'vitest';
import type { ComputeEngine } from '../../fakes/compute-engine/index.ts';
import { type Clock, Life, TIMING } from '../../workflows/life.ts';
import { gcpRequest, gcpWorld, PLACEMENT, ZONE } from './gcp-world.ts';

const MINUTE = 60_000;
const NAME = gcpRequest('a').name;

/** A Proxy's whole life against a Compute Engine, on one clock that the test moves. */
async function world() {
  const clock: Clock = { now: Date.parse('2026-01-01T00:00:00Z') };
  const gcp = await gcpWorld({ now: () => clock.now, settings: { insertMillis: 3_000, deleteMillis: 3_000 } });
  const life = new Life({ provider: await gcp.start(), clock, placement: PLACEMENT, zonal: {} });
  return { ...gcp, clock, life, inserts: () => gcp.engine.state().inserts[NAME] ?? 0 };
}

/** An insert whose answer is lost, and no attempt after it that could find out. */
function loseInsert({ faults }: ComputeEngine): void {
  faults.add({ call: 'instances.insert', effect: { kind: 'lost' } });
  faults.add({ call: 'instances.get', times: 2, effect: { kind: 'cut' } });
}

describe('an insert that was accepted, and failed', () => {
  test.each(['ZONE_RESOURCE_POOL_EXHAUSTED', 'ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS'])(
    'a stockout (%s) waits as a quota does, is tried again after each wait, and is over when it is over',
    async (code) => {
      const { engine, life, clock, inserts } = await world();
      engine.settings.stockouts = { [ZONE]: code };
      await life.nudge();
      await life.go();
      expect(life.reason).toBe('QuotaExceeded');
      expect(life.message).toContain(code);
      expect(life.wait).toBe(TIMING.quotaRetry);
      expect(inserts()).toBe(1);

      const start = clock.now;
      await life.go(20);
      // One insert and one look at what became of it in each 5 minutes and 5 seconds.
      expect(inserts()).toBeGreaterThanOrEqual(10);
      expect(inserts()).toBeLessThanOrEqual(Math.ceil((clock.now - start) / TIMING.quotaRetry) + 1);

      engine.settings.stockouts = {};
      await life.go(4);
      expect(life.reason).toBe('Created');
      expect(life.status.ip).toMatch(/^198\.18\./);
    },
  );

  test('however often the workflow is woken meanwhile, it is not tried again before its time', async () => {
    const { engine, life, clock, inserts } = await world();
    engine.settings.instanceQuota = 0;
    await life.nudge();
    await life.go();
    for (let second = 0; second < 230; second += 10) {
      clock.now += 10_000;
      await life.nudge();
      expect(life.reason).toBe('QuotaExceeded');
    }
    expect(inserts()).toBe(1);
    expect(life.message).toMatch(/QUOTA_EXCEEDED: Quota 'INSTANCES' exceeded/);
    await life.go();
    expect(inserts()).toBe(2);
  });

  test('an edit is tried at once, whatever became of the insert before it', async () => {
    const { engine, life, inserts } = await world();
    engine.settings.stockouts = { [ZONE]: 'ZONE_RESOURCE_POOL_EXHAUSTED' };
    await life.nudge();
    await life.go();
    expect(life.reason).toBe('QuotaExceeded');
    life.edit('h1', { ...PLACEMENT, zone: 'europe-west1-c' });
    await life.nudge();
    expect(inserts()).toBe(2);
    await life.go(2);
    expect(life.reason).toBe('Created');
    expect(life.status.providerID).toBe(`gcp://test-project/europe-west1-c/${NAME}`);
  });

  test.each([
    ['PERMISSIONS_ERROR', 403],
    ['INVALID_FIELD_VALUE', 400],
  ])('%s is final until an edit, which is tried at once and not blamed for it', async (code, status) => {
    const { engine, life, inserts } = await world();
    engine.faults.add({ call: 'instances.insert', effect: { kind: 'operationError', code, message: 'no', status } });
    await life.nudge();
    await life.go();
    expect(life.reason).toBe('PermanentError');
    expect(life.message).toContain(`${code}: no`);
    await life.go();
    expect(inserts()).toBe(1);
    life.edit('h1');
    await life.nudge();
    expect(inserts()).toBe(2);
    await life.go(2);
    expect(life.reason).toBe('Created');
  });

  test('a failure that nobody knows the cause of is tried again with a backoff, not in a rush', async () => {
    const { engine, life, clock, inserts } = await world();
    const effect = { kind: 'operationError', code: 'INTERNAL_ERROR', status: 500 } as const;
    engine.faults.add({ call: 'instances.insert', times: null, effect });
    await life.nudge();
    await life.go();
    expect(life.reason).toBe('TransientError');
    const start = clock.now;
    while (clock.now < start + 30 * MINUTE) await life.go();
    expect(inserts()).toBeGreaterThan(5);
    expect(inserts()).toBeLessThanOrEqual(31);
    engine.faults.clear();
    await life.go(20);
    expect(life.reason).toBe('Created');
  });

  test('what a look has shown is remembered: a refusal after it proves that there is nothing to delete', async () => {
    const { engine, life } = await world();
    engine.faults.add({ call: 'instances.insert', times: 3, effect: { kind: 'error', status: 503 } });
    await life.nudge();
    expect(life.reason).toBe('TransientError');
    const forbidden = { kind: 'error', status: 403, reason: 'forbidden' } as const;
    engine.faults.add({ call: 'instances.insert', times: null, effect: forbidden });
    await life.go();
    expect(life.reason).toBe('PermanentError');
    engine.faults.add({ call: '*', times: null, effect: forbidden });
    life.remove();
    await life.nudge();
    expect(life.exists).toBe(false);
  });

  test('a Proxy whose instance never came to be is deleted at once', async () => {
    const { engine, life, clock } = await world();
    engine.settings.instanceQuota = 0;
    await life.nudge();
    await life.go();
    expect(life.reason).toBe('QuotaExceeded');
    const before = clock.now;
    life.remove();
    await life.nudge();
    expect(life.finalizer).toBe(false);
    expect(clock.now).toBe(before);
  });
});

describe('a zone that has run out of machines, and others to fall back on', () => {
  const OTHERS = ['europe-west1-c', 'us-central1-a'];
  const exhausted = (zones: string[]) =>
    Object.fromEntries(zones.map((zone) => [zone, 'ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS']));

  test('the next one is tried at once, and the status names it before it is', async () => {
    const { engine, life, clock } = await world();
    life.placement = { ...PLACEMENT, zones: OTHERS };
    engine.settings.stockouts = exhausted([ZONE, 'europe-west1-c']);
    const start = clock.now;
    await life.nudge();
    expect(life.status).toMatchObject({ zone: ZONE });
    await life.go();
    expect(life.status).toMatchObject({ zone: 'europe-west1-c' });
    await life.go(2);
    expect(life.reason).toBe('Created');
    expect(life.status).toMatchObject({
      zone: 'us-central1-a',
      providerID: `gcp://test-project/us-central1-a/${NAME}`,
    });
    expect(clock.now - start).toBeLessThan(TIMING.quotaRetry / 5);
    expect(life.story.join()).toContain('QuotaExceeded');
  });

  test('when all have, there is one round of them per wait, however often the workflow is woken', async () => {
    const { engine, life, clock, inserts } = await world();
    life.placement = { ...PLACEMENT, zones: OTHERS };
    engine.settings.stockouts = exhausted([ZONE, ...OTHERS]);
    await life.nudge();
    await life.go(3);
    expect(life.reason).toBe('QuotaExceeded');
    expect(life.message).toContain(`all of ${[ZONE, ...OTHERS].join(', ')} have been tried`);
    expect(life.wait).toBe(TIMING.quotaRetry);
    expect(inserts()).toBe(3);
    for (let second = 0; second < 230; second += 10) {
      clock.now += 10_000;
      await life.nudge();
    }
    expect(inserts()).toBe(3);
    const start = clock.now;
    await life.go(16);
    const rounds = Math.ceil((clock.now - start) / TIMING.quotaRetry);
    expect(inserts()).toBeLessThanOrEqual(3 + 3 * rounds);
    engine.settings.stockouts = {};
    await life.go(4);
    expect(life.reason).toBe('Created');
    expect(life.status.zone).toBe(ZONE);
  });

  test('a first attempt that fails, then a stockout that the insert itself is told: on to the next as soon as it is certain', async () => {
    const { engine, life, clock } = await world();
    life.placement = { ...PLACEMENT, zones: OTHERS };
    const refusal = { kind: 'error', status: 503, reason: 'ZONE_RESOURCE_POOL_EXHAUSTED' } as const;
    engine.faults.add({ call: 'instances.insert', effect: { kind: 'error', status: 503 } });
    engine.faults.add({ call: 'instances.insert', zone: ZONE, times: null, effect: refusal });
    const start = clock.now;
    await life.nudge();
    await life.go(2);
    expect(life.reason).toBe('Created');
    expect(life.status.zone).toBe('europe-west1-c');
    expect(clock.now - start).toBeLessThan(TIMING.quotaRetry / 5);
  });

  test('an edit of the preferred zone is tried first, whichever was fallen back on', async () => {
    const { engine, life } = await world();
    life.placement = { ...PLACEMENT, zones: ['europe-west1-c'] };
    engine.settings.stockouts = exhausted([ZONE]);
    await life.nudge();
    const rate = { kind: 'error', status: 429, reason: 'rateLimitExceeded', retryAfter: 30 } as const;
    engine.faults.add({ call: 'instances.insert', effect: rate });
    await life.go();
    expect(life).toMatchObject({ reason: 'RateLimited', status: { zone: 'europe-west1-c' } });
    life.edit('h1', { ...PLACEMENT, zone: 'us-central1-a', zones: ['europe-west1-c'] });
    await life.nudge();
    await life.go();
    expect(life).toMatchObject({ reason: 'Created', status: { zone: 'us-central1-a' } });
  });

  test('an edit that takes an exhausted zone off the list is tried at once', async () => {
    const { engine, life } = await world();
    life.placement = { ...PLACEMENT, zones: ['europe-west1-c'] };
    engine.settings.stockouts = exhausted([ZONE, 'europe-west1-c']);
    await life.nudge();
    await life.go();
    expect(life.status.zone).toBe('europe-west1-c');
    engine.settings.stockouts = exhausted(['europe-west1-c']);
    life.edit('h0', PLACEMENT);
    await life.go(2);
    expect(life).toMatchObject({ reason: 'Created', status: { zone: ZONE } });
  });

  test('one without the machine type is passed over, and does not fail the Proxy for good', async () => {
    const { engine, life } = await world();
    life.placement = { ...PLACEMENT, zones: ['europe-west1-c'] };
    engine.settings.stockouts = exhausted([ZONE]);
    const message = "Machine type with name 'e2-micro' does not exist in zone 'europe-west1-c'.";
    const effect = { kind: 'error', status: 400, reason: 'invalid', message } as const;
    engine.faults.add({ call: 'instances.insert', zone: 'europe-west1-c', times: null, effect });
    await life.nudge();
    await life.go();
    expect(life).toMatchObject({ reason: 'QuotaExceeded', wait: TIMING.quotaRetry });
    expect(life.message).toContain(message);
    engine.settings.stockouts = {};
    await life.go(2);
    expect(life).toMatchObject({ reason: 'Created', status: { zone: ZONE } });
  });

  test('a VM that is seen on its way out, as what could not be finished is taken away, does not hide the stockout', async () => {
    const { engine, life, clock, inserts } = await world();
    engine.settings.insertMillis = 12_000;
    life.placement = { ...PLACEMENT, zones: ['europe-west1-c'] };
    engine.settings.stockouts = exhausted([ZONE]);
    const start = clock.now;
    await life.nudge();
    for (let waits = 0; waits < 25 && life.reason !== 'Created'; waits += 1) await life.go();
    expect(life.said.join()).toContain('Stopped');
    expect(life).toMatchObject({ reason: 'Created', status: { zone: 'europe-west1-c' } });
    expect(inserts()).toBe(2);
    expect(clock.now - start).toBeLessThan(TIMING.quotaRetry / 5);
  });

  test('a Proxy that is deleted meanwhile leaves nothing in any of them', async () => {
    const { engine, life } = await world();
    life.placement = { ...PLACEMENT, zones: OTHERS };
    engine.settings.stockouts = exhausted([ZONE]);
    await life.nudge();
    engine.faults.add({ call: 'instances.insert', effect: { kind: 'lost' } });
    await life.go();
    expect(life.status.zone).toBe('europe-west1-c');
    life.remove();
    await life.nudge();
    await life.go(5);
    expect(life.exists).toBe(false);
    expect(engine.state().instances).toEqual([]);
  });
});

describe('a zone that there is not, first met by an insert that failed in passing', () => {
  async function inNoZone() {
    const { engine, life } = await world();
    life.placement = { ...PLACEMENT, zone: 'us-east1-a' };
    engine.faults.add({ call: 'instances.insert', effect: { kind: 'error', status: 503 } });
    await life.nudge();
    expect(life.reason).toBe('PermanentError');
    expect(life.message).toContain("Permission denied on 'locations/us-east1-a' (or it may not exist)");
    return life;
  }

  test('an edit mends it', async () => {
    const life = await inNoZone();
    life.edit('h1', PLACEMENT);
    await life.nudge();
    await life.go();
    expect(life).toMatchObject({ reason: 'Created', status: { zone: ZONE } });
  });

  test('and nothing holds the Proxy when it is deleted', async () => {
    const life = await inNoZone();
    life.remove();
    await life.nudge();
    expect(life.exists).toBe(false);
  });
});

describe('an insert that takes its time', () => {
  test('a VM that can not be seen yet is on its way, and a deletion waits for it', async () => {
    const { engine, life } = await world();
    Object.assign(engine.settings, { visibleMillis: 20_000, insertMillis: 30_000 });
    await life.nudge();
    await life.go();
    expect(life.reason).toBe('Provisioning');
    expect(life.message).toContain('its insert is PENDING');
    life.remove();
    await life.nudge();
    expect(life.finalizer).toBe(true);
    await life.go(12);
    expect(life.finalizer).toBe(false);
    expect(engine.state().instances).toEqual([]);
  });

  test('a lost answer, then another zone: the VM is found where it is, and replaced, never doubled', async () => {
    const { engine, life } = await world();
    loseInsert(engine);
    await life.nudge();
    expect(life.reason).toBe('TransientError');
    life.edit('h1', { ...PLACEMENT, zone: 'us-central1-a' });
    for (let waits = 0; waits < 8; waits += 1) {
      await life.go();
      expect(engine.state().instances.length).toBeLessThanOrEqual(1);
    }
    expect(life.reason).toBe('Created');
    expect(life.said.map((line) => line.split(' ')[1])).toContain('Replacing');
    expect(engine.state().instances).toMatchObject([{ zone: 'us-central1-a', status: 'RUNNING' }]);
  });

  test('a lost answer, then another zone before any list shows the VM: found all the same', async () => {
    const { engine, life, inserts } = await world();
    Object.assign(engine.settings, { visibleMillis: 20_000, insertMillis: 30_000, listLagMillis: 60_000 });
    loseInsert(engine);
    await life.nudge();
    expect(life).toMatchObject({ reason: 'TransientError', status: { zone: ZONE } });
    life.edit('h1', { ...PLACEMENT, zone: 'us-central1-a' });
    for (let waits = 0; waits < 20; waits += 1) {
      await life.go();
      expect(engine.state().instances.length).toBeLessThanOrEqual(1);
    }
    expect(life.reason).toBe('Created');
    expect(life.status.zone).toBe('us-central1-a');
    expect(engine.state().instances).toMatchObject([{ zone: 'us-central1-a', status: 'RUNNING' }]);
    expect(inserts()).toBe(2);
  });

  test.each(['us-central1-a', 'no-such-zone', 'not/even a-name'])(
    'a lost answer, then a deletion from zone %j: nothing is left',
    async (zone) => {
      const { engine, life } = await world();
      loseInsert(engine);
      await life.nudge();
      expect(life.reason).toBe('TransientError');
      life.edit('h1', { ...PLACEMENT, zone });
      life.remove();
      await life.nudge();
      await life.go(5);
      expect(life.finalizer).toBe(false);
      expect(engine.state().instances).toEqual([]);
    },
  );
});
