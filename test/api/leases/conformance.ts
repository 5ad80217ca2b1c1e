import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Candidate, Granted, LeaseStore } from '../../../api/leases/store.ts';
import type { ReportResult } from '../../../model/lease.ts';

export const COOLDOWN = 60_000;
const TTL = 10_000;

export interface StoreUnderTest {
  cooldownMillis: number;
  clock: () => number;
}

const candidate = (uid: string, maxConcurrent = 1): Candidate => ({ uid, maxConcurrent });

/** The contract of LeaseStore. A backend passes it whole or is not one. `makeStore` gives an empty store. */
export function leaseStoreConformance(
  name: string,
  makeStore: (settings: StoreUnderTest) => LeaseStore | Promise<LeaseStore>,
): void {
  describe(`${name} keeps the contract of a lease store`, () => {
    let now: number;
    let store: LeaseStore;

    beforeEach(async () => {
      now = 1_800_000_000_000;
      const opened = await makeStore({ cooldownMillis: COOLDOWN, clock: () => now });
      store = opened;
      onTestFinished(() => opened.close());
    });

    const ask = (candidates: Candidate[], target?: string) =>
      store.grant({ candidates, ttlMillis: TTL, target, owner: undefined });

    async function take(candidates: Candidate[], target?: string): Promise<Granted> {
      const outcome = await ask(candidates, target);
      if (!outcome.granted) throw new Error(`not granted: ${JSON.stringify(outcome)}`);
      return outcome;
    }

    const takeFrom = async (candidates: Candidate[], target?: string): Promise<string> =>
      (await take(candidates, target)).lease.proxyUid;

    describe('grant', () => {
      it('gives a lease that ends its TTL from now', async () => {
        const { lease, activeLeases } = await take([candidate('a')], 'shop');
        expect(lease).toMatchObject({ proxyUid: 'a', target: 'shop', grantedAt: now, endsAt: now + TTL });
        expect(activeLeases).toBe(1);
      });

      it('prefers the fewest active leases, then the first in the list', async () => {
        const fleet = [candidate('a', 3), candidate('b', 3), candidate('c', 3)];
        const order: string[] = [];
        for (let i = 0; i < 6; i++) order.push(await takeFrom(fleet));
        expect(order).toEqual(['a', 'b', 'c', 'a', 'b', 'c']);
      });

      it('never goes over maxConcurrent, however many ask at the same time', async () => {
        const fleet = [candidate('a', 3), candidate('b', 2)];
        const outcomes = await Promise.all(Array.from({ length: 20 }, () => ask(fleet)));
        expect(outcomes.filter(({ granted }) => granted)).toHaveLength(5);
        expect(await store.countActive(['a', 'b'])).toEqual([3, 2]);
      });

      it('counts each refused candidate once and says how long until the first is free', async () => {
        const { lease } = await take([candidate('limited')], 'shop');
        await store.report(lease.id, 'banned', undefined);
        now += 1000;
        await take([candidate('full')]);
        now += 1000;
        const outcome = await ask([candidate('limited'), candidate('full'), candidate('none', 0)], 'shop');
        expect(outcome).toEqual({ granted: false, atCapacity: 2, inCooldown: 1, waitMillis: TTL - 1000 });
      });

      it('says that waiting is of no use when every limit is 0, or nobody was proposed', async () => {
        const nothing = { granted: false, inCooldown: 0, waitMillis: undefined };
        expect(await ask([candidate('a', 0)])).toEqual({ ...nothing, atCapacity: 1 });
        expect(await ask([])).toEqual({ ...nothing, atCapacity: 0 });
      });

      it('makes one wait for both the room and the end of the cooldown', async () => {
        const { lease } = await take([candidate('a')], 'shop');
        await store.report(lease.id, 'rate_limited', undefined);
        expect(await ask([candidate('a')], 'shop')).toMatchObject({ inCooldown: 1, waitMillis: COOLDOWN });
        expect(await ask([candidate('a')], 'other')).toMatchObject({ atCapacity: 1, waitMillis: TTL });
      });

      it('leaves existing leases when maxConcurrent is lowered, and grants none until enough have ended', async () => {
        for (let i = 0; i < 3; i++, now += 1000) await take([candidate('a', 3)]);
        expect(await ask([candidate('a', 2)])).toMatchObject({ granted: false, waitMillis: TTL - 2000 });
        now += TTL - 2000;
        expect(await takeFrom([candidate('a', 2)])).toBe('a');
      });

      it('never gives the same id twice, and gives ids of at least 128 bits', async () => {
        const granted = await Promise.all(Array.from({ length: 500 }, () => take([candidate('a', 1000)])));
        const ids = new Set(granted.map(({ lease }) => lease.id));
        expect(ids.size).toBe(500);
        for (const id of ids) expect(id).toMatch(/^[\w-]{22,}$/);
      });
    });

    describe('expiry', () => {
      it('frees the place at the very moment the lease ends, without any sweep', async () => {
        await take([candidate('a')]);
        now += TTL - 1;
        expect(await ask([candidate('a')])).toMatchObject({ granted: false, waitMillis: 1 });
        now += 1;
        expect(await store.countActive(['a'])).toEqual([0]);
        expect(await takeFrom([candidate('a')])).toBe('a');
      });

      it('never lets an old id touch the lease that came after it', async () => {
        const old = (await take([candidate('a')])).lease;
        now += TTL;
        await take([candidate('a')]);
        expect(await store.renew(old.id, TTL)).toBeUndefined();
        await store.release(old.id);
        expect(await store.countActive(['a'])).toEqual([1]);
      });

      it('is final, even when the clock is set back', async () => {
        const expired = (await take([candidate('a')])).lease;
        const released = (await take([candidate('b')])).lease;
        now += TTL;
        await store.release(released.id);
        expect(await store.renew(expired.id, TTL)).toBeUndefined();
        now -= 1;
        for (const { id } of [expired, released]) expect(await store.renew(id, TTL)).toBeUndefined();
        expect(await store.countActive(['a', 'b'])).toEqual([0, 0]);
      });
    });

    describe('renew', () => {
      it('keeps the proxy and ends the new TTL from now, later or earlier', async () => {
        const { lease } = await take([candidate('a')], 'shop');
        now += 5000;
        expect(await store.renew(lease.id, TTL)).toEqual({ lease: { ...lease, endsAt: now + TTL }, activeLeases: 1 });
        expect(await store.renew(lease.id, 1000)).toMatchObject({ lease: { endsAt: now + 1000 } });
        now += 1000;
        expect(await store.countActive(['a'])).toEqual([0]);
      });

      it('asks neither for room nor for the end of a cooldown', async () => {
        const { lease } = await take([candidate('a')], 'shop');
        await store.report(lease.id, 'banned', undefined);
        expect(await store.renew(lease.id, TTL)).toMatchObject({ lease: { proxyUid: 'a' } });
      });

      it('refuses an unknown, an expired and a released lease', async () => {
        const { lease } = await take([candidate('a')]);
        await store.release(lease.id);
        const expired = (await take([candidate('a')])).lease;
        now += TTL;
        for (const id of ['nobody', lease.id, expired.id]) expect(await store.renew(id, TTL)).toBeUndefined();
      });
    });

    describe('release', () => {
      it('frees the place at once, and again does nothing', async () => {
        const { lease } = await take([candidate('a')]);
        await store.release(lease.id);
        expect(await takeFrom([candidate('a')])).toBe('a');
        await store.release(lease.id);
        await store.release('nobody');
        expect(await store.countActive(['a'])).toEqual([1]);
      });
    });

    describe('report', () => {
      const results: [ReportResult, boolean][] = [
        ['ok', false],
        ['rate_limited', true],
        ['banned', true],
      ];
      it.each(results)('%s: cools the proxy down for the target: %s', async (result, cools) => {
        const { lease } = await take([candidate('a', 9)], 'shop');
        expect(await store.report(lease.id, result, undefined)).toBe(true);
        expect(await ask([candidate('a', 9)], 'shop')).toMatchObject({ granted: !cools });
      });

      const targets = [
        { of: { lease: 'shop', report: 'bank' }, cooled: ['bank'], free: ['shop', undefined] },
        { of: { lease: 'shop', report: undefined }, cooled: ['shop'], free: ['bank', undefined] },
        { of: { lease: undefined, report: 'bank' }, cooled: ['bank'], free: ['shop', undefined] },
        { of: { lease: undefined, report: undefined }, cooled: ['shop', 'bank', undefined], free: [] },
      ];
      it.each(targets)('falls back from report to lease to all targets: $of', async ({ of, cooled, free }) => {
        const { lease } = await take([candidate('a', 9)], of.lease);
        await store.report(lease.id, 'banned', of.report);
        for (const target of cooled) expect(await ask([candidate('a', 9)], target)).toMatchObject({ granted: false });
        for (const target of free) expect(await ask([candidate('a', 9)], target)).toMatchObject({ granted: true });
      });

      it('lets the proxy back to the target when the window is over, counted from the last report', async () => {
        const { lease } = await take([candidate('a')], 'shop');
        await store.report(lease.id, 'rate_limited', undefined);
        now += 30_000;
        await store.report(lease.id, 'rate_limited', undefined);
        now += COOLDOWN - 1;
        expect(await ask([candidate('a')], 'shop')).toMatchObject({ inCooldown: 1, waitMillis: 1 });
        now += 1;
        expect(await takeFrom([candidate('a')], 'shop')).toBe('a');
      });

      it('goes by the later of a cooldown for the target and one for all', async () => {
        const { lease } = await take([candidate('a', 9)]);
        await store.report(lease.id, 'banned', 'shop');
        now += 1000;
        await store.report(lease.id, 'banned', undefined);
        now += 1000;
        await store.report(lease.id, 'banned', 'bank');
        now += COOLDOWN - 2000;
        expect(await ask([candidate('a', 9)], 'shop')).toMatchObject({ inCooldown: 1, waitMillis: 1000 });
        expect(await ask([candidate('a', 9)], 'bank')).toMatchObject({ inCooldown: 1, waitMillis: 2000 });
        expect(await ask([candidate('a', 9)])).toMatchObject({ inCooldown: 1, waitMillis: 1000 });
      });

      it('still knows a lease that expired or was released less than a window ago', async () => {
        const expired = (await take([candidate('a')], 'shop')).lease;
        const released = (await take([candidate('b')], 'shop')).lease;
        await store.release(released.id);
        now += COOLDOWN - 1;
        expect(await store.report(released.id, 'ok', undefined)).toBe(true);
        now += TTL;
        expect(await store.report(expired.id, 'ok', undefined)).toBe(true);
        expect(await store.report(released.id, 'ok', undefined)).toBe(false);
        now += 1;
        expect(await store.report(expired.id, 'ok', undefined)).toBe(false);
        expect(await store.report('nobody', 'ok', undefined)).toBe(false);
      });

      it('cools down the proxy of the reported lease only', async () => {
        const { lease } = await take([candidate('a')], 'shop');
        await store.report(lease.id, 'banned', undefined);
        expect(await takeFrom([candidate('a', 9), candidate('b')], 'shop')).toBe('b');
      });
    });

    describe('trim', () => {
      it('removes what can matter no more, and changes no answer', async () => {
        const ended = (await take([candidate('a')], 'shop')).lease;
        await store.report(ended.id, 'banned', undefined);
        now += COOLDOWN;
        const late = (await take([candidate('b')], 'shop')).lease;
        await store.report(late.id, 'banned', 'bank');
        now += TTL;
        expect(await store.trim()).toBe(2);
        expect(await store.trim()).toBe(0);
        expect(await store.report(late.id, 'ok', undefined)).toBe(true);
        expect(await ask([candidate('b')], 'bank')).toMatchObject({ inCooldown: 1 });
        expect(await takeFrom([candidate('a')], 'shop')).toBe('a');
      });
    });
  });
}
