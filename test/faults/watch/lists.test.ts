import { describe, expect, it } from 'vitest';
import { eventually, IMPATIENT, startWatchedFleet } from './watched-fleet.ts';

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `proxy-${index + 1000}`);

describe('lists of several pages', () => {
  it.concurrent('come together with all their pages', async () => {
    await using fleet = await startWatchedFleet();
    await Promise.all(names(23).map((name) => fleet.create(name)));
    const cache = await fleet.watch({ ...IMPATIENT, pageSize: 5 });
    await fleet.converged(cache);
    expect(fleet.gate.count({ kind: 'list' })).toBe(5);
    expect(fleet.heard).toHaveLength(23);
  });

  it.concurrent('are nothing until the last page is in', async () => {
    await using fleet = await startWatchedFleet();
    await Promise.all(names(4).map((name) => fleet.create(name)));
    const secondPage = fleet.gate.hold({ kind: 'list', continued: true });
    const watching = fleet.watch({ ...IMPATIENT, pageMillis: 60_000, pageSize: 2 });
    await secondPage.arrived;
    expect(fleet.heard).toEqual([]);
    secondPage.release();
    const cache = await watching;
    await fleet.converged(cache);
  });

  it.concurrent('do not hide what was deleted, edited or created between two of their pages', async () => {
    await using fleet = await startWatchedFleet();
    const [first] = await Promise.all(names(6).map((name) => fleet.create(name)));
    const secondPage = fleet.gate.hold({ kind: 'list', continued: true });
    const watching = fleet.watch({ ...IMPATIENT, pageMillis: 60_000, pageSize: 2 });
    await secondPage.arrived;
    // One from the page that is in, others from pages to come.
    await fleet.remove('proxy-1000');
    await fleet.remove('proxy-1005');
    await fleet.edit('proxy-1001', { edit: 'between pages' });
    await fleet.create('proxy-0999');
    secondPage.release();
    const cache = await watching;
    await fleet.converged(cache);
    expect(fleet.heard).toContain(`removed proxy-1000 ${first?.metadata.uid}`);
  });

  it.concurrent.each([410, 429, 500])('begin again when a later page is answered with %i', async (status) => {
    await using fleet = await startWatchedFleet();
    await Promise.all(names(6).map((name) => fleet.create(name)));
    fleet.gate.answer({ kind: 'list', continued: true }, status, { times: 2 });
    const cache = await fleet.watch({ ...IMPATIENT, pageSize: 2 });
    await fleet.converged(cache);
    expect(fleet.gate.count({ kind: 'list', continued: false })).toBe(3);
    expect(fleet.heard.filter((line) => line.startsWith('removed'))).toEqual([]);
  });

  it.concurrent('end in time when a later page falls into a black hole', async () => {
    await using fleet = await startWatchedFleet();
    await Promise.all(names(4).map((name) => fleet.create(name)));
    const secondPage = fleet.gate.hold({ kind: 'list', continued: true });
    const watching = fleet.watch({ ...IMPATIENT, pageSize: 2 });
    await secondPage.arrived;
    fleet.gate.blackHole();
    secondPage.release();
    await eventually(() => expect(fleet.warnings).not.toEqual([]));
    await fleet.gate.pass();
    await fleet.converged(await watching);
  });

  it('hold a fleet of more than a page as it comes by default', async () => {
    await using fleet = await startWatchedFleet();
    const all = names(620);
    for (let at = 0; at < all.length; at += 40) {
      await Promise.all(all.slice(at, at + 40).map((name) => fleet.create(name)));
    }
    const cache = await fleet.watch({ relistMillis: 600_000 });
    await fleet.converged(cache);
    expect(fleet.gate.count({ kind: 'list' })).toBe(2);
    expect([...cache.all()]).toHaveLength(620);
  });
});
