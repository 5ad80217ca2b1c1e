import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openEmbeddedLeaseStore } from '../../../api/leases/embedded.ts';
import type { LeaseStore } from '../../../api/leases/store.ts';
import { temporaryLeaseFile } from './lease-files.ts';

const COOLDOWN = 50;
const UIDS = ['a', 'b', 'c'];

type Step =
  | { do: 'grant'; limits: number[]; target: string | undefined; ttl: number }
  | { do: 'renew' | 'release'; which: number; ttl: number }
  | { do: 'ban'; which: number; target: string | undefined }
  | { do: 'wait'; millis: number }
  | { do: 'trim' };

const target = fc.constantFrom(undefined, 'shop', 'bank');
const which = fc.nat(30);
const ttl = fc.integer({ min: 1, max: 60 });
const grant = fc.record({
  do: fc.constant('grant' as const),
  limits: fc.array(fc.nat(3), { minLength: 3, maxLength: 3 }),
  target,
  ttl,
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: grant, weight: 4 },
  { arbitrary: fc.record({ do: fc.constantFrom('renew' as const, 'release' as const), which, ttl }), weight: 2 },
  { arbitrary: fc.record({ do: fc.constant('ban' as const), which, target }), weight: 1 },
  { arbitrary: fc.record({ do: fc.constant('wait' as const), millis: fc.nat(40) }), weight: 3 },
  { arbitrary: fc.constant({ do: 'trim' as const }), weight: 1 },
);

/** What the store should know, kept as plainly as possible. */
interface Model {
  now: number;
  leases: { id: string; uid: string; target: string | undefined; endsAt: number }[];
  bans: { uid: string; target: string | undefined; until: number }[];
}

const activeOn = ({ leases, now }: Model, uid: string): number =>
  leases.filter((lease) => lease.uid === uid && lease.endsAt > now).length;

const isBanned = ({ bans, now }: Model, uid: string, wanted: string | undefined): boolean =>
  bans.some((ban) => ban.uid === uid && ban.until > now && (ban.target === undefined || ban.target === wanted));

async function take(store: LeaseStore, model: Model, { limits, target, ttl }: Step & { do: 'grant' }): Promise<void> {
  const candidates = UIDS.map((uid, index) => ({ uid, maxConcurrent: limits[index] as number }));
  const free = candidates
    .filter(({ uid, maxConcurrent }) => !isBanned(model, uid, target) && activeOn(model, uid) < maxConcurrent)
    .sort((a, b) => activeOn(model, a.uid) - activeOn(model, b.uid));
  const outcome = await store.grant({ candidates, ttlMillis: ttl, target, owner: undefined });
  expect(outcome.granted).toBe(free.length > 0);
  if (outcome.granted) {
    expect(outcome.lease.proxyUid).toBe(free[0]?.uid);
    model.leases.push({ id: outcome.lease.id, uid: outcome.lease.proxyUid, target, endsAt: outcome.lease.endsAt });
  } else {
    expect(outcome.inCooldown).toBe(UIDS.filter((uid) => isBanned(model, uid, target)).length);
    expect(outcome.atCapacity + outcome.inCooldown).toBe(UIDS.length);
  }
}

async function perform(store: LeaseStore, model: Model, step: Step): Promise<void> {
  if (step.do === 'grant') return take(store, model, step);
  if (step.do === 'wait') model.now += step.millis;
  if (step.do === 'trim') await store.trim();
  if (!('which' in step) || model.leases.length === 0) return;

  const lease = model.leases[step.which % model.leases.length] as Model['leases'][number];
  const active = lease.endsAt > model.now;
  if (step.do === 'renew') {
    expect((await store.renew(lease.id, step.ttl)) !== undefined).toBe(active);
    if (active) lease.endsAt = model.now + step.ttl;
  } else if (step.do === 'release') {
    await store.release(lease.id);
    if (active) lease.endsAt = model.now;
  } else if (step.do === 'ban') {
    const known = lease.endsAt + COOLDOWN > model.now;
    expect(await store.report(lease.id, 'banned', step.target)).toBe(known);
    if (known) model.bans.push({ uid: lease.uid, target: step.target ?? lease.target, until: model.now + COOLDOWN });
  }
}

describe('whatever happens to the embedded store', () => {
  it('never goes over a limit, never leases into a cooldown, and its counts add up', async () => {
    const file = temporaryLeaseFile();
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.nat(40), async (steps, restartAt) => {
        const path = `${file}-${run++}`;
        const model: Model = { now: 1000, leases: [], bans: [] };
        const open = (): LeaseStore =>
          openEmbeddedLeaseStore(path, { cooldownMillis: COOLDOWN, clock: () => model.now });
        let store = open();
        for (const [index, step] of steps.entries()) {
          if (index === restartAt) {
            await store.close();
            store = open();
          }
          await perform(store, model, step);
          expect(await store.countActive(UIDS)).toEqual(UIDS.map((uid) => activeOn(model, uid)));
        }
        await store.close();
      }),
      { numRuns: 150 },
    );
  });
});
