import { describe, expect, it } from 'vitest';
import { eventually, IMPATIENT, startWatchedFleet } from './watched-fleet.ts';

describe('the ages tell the truth', () => {
  it.concurrent('nothing was listed or heard before the first complete list', async () => {
    await using fleet = await startWatchedFleet();
    await fleet.create('one');
    await fleet.create('two');
    const secondPage = fleet.gate.hold({ kind: 'list', continued: true });
    const watching = fleet.watch({ ...IMPATIENT, pageMillis: 60_000, pageSize: 1 });
    await secondPage.arrived;
    const released = Date.now();
    secondPage.release();
    const cache = await watching;
    // What is known is as old as the question, not as the answer.
    expect(cache.listedAt).toBeGreaterThan(0);
    expect(cache.listedAt).toBeLessThanOrEqual(released);
    expect(cache.heardAt).toBeGreaterThanOrEqual(released);
  });

  it.concurrent('an event is a sign of life, and no list', async () => {
    await using fleet = await startWatchedFleet();
    const cache = await fleet.watch(IMPATIENT);
    const { listedAt } = cache;
    const before = Date.now();
    await fleet.create('event');
    await eventually(() => expect(cache.heardAt).toBeGreaterThanOrEqual(before));
    expect(cache.listedAt).toBe(listedAt);
  });

  it.concurrent.each([
    { name: 'failing lists', status: 500, match: { kind: 'list' } as const },
    { name: 'failing pages', status: 410, match: { kind: 'list', continued: true } as const },
  ])('$name are no sign of life', async ({ status, match }) => {
    await using fleet = await startWatchedFleet();
    await fleet.create('one');
    await fleet.create('two');
    const cache = await fleet.watch({ ...IMPATIENT, silenceMillis: 60_000, pageSize: 1 });
    await fleet.edit('two', { edit: 'heard' });
    await fleet.converged(cache);
    fleet.gate.answer(match, status);
    fleet.gate.cut();
    await eventually(() => expect(fleet.warnings.length).toBeGreaterThan(0));
    const { listedAt, heardAt } = cache;
    await eventually(() => expect(fleet.warnings.length).toBeGreaterThan(3));
    expect(cache).toMatchObject({ listedAt, heardAt });
    await fleet.gate.pass();
    await eventually(() => expect(cache.listedAt).toBeGreaterThan(listedAt));
    expect(cache.heardAt).toBeGreaterThan(heardAt);
  });
});
