import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { eventually, IMPATIENT, startWatchedFleet } from './watched-fleet.ts';

const DEFAULTS = { relistMillis: 300_000 };

describe('the API server is asked no more than needed', () => {
  it.concurrent('with one list and one watch in an idle time', async () => {
    await using fleet = await startWatchedFleet();
    await fleet.create('idle');
    const cache = await fleet.watch(DEFAULTS);
    await sleep(20_000);
    expect(fleet.gate.requests.map(({ kind }) => kind)).toEqual(['list', 'watch']);
    expect(fleet.warnings).toEqual([]);
    // Not because it is deaf.
    await fleet.edit('idle', { edit: 'after' });
    await fleet.converged(cache);
    expect(fleet.gate.requests).toHaveLength(2);
  });

  it.concurrent('with one list and one watch in each relist interval', async () => {
    await using fleet = await startWatchedFleet();
    await fleet.watch({ relistMillis: 1_000 });
    await eventually(() => expect(fleet.gate.count({ kind: 'watch' })).toBeGreaterThanOrEqual(4));
    expect(fleet.warnings).toEqual([]);
    const kinds = fleet.gate.requests.map(({ kind }) => kind).join(' ');
    expect(kinds).toMatch(/^(list watch ?)+( list)?$/);
  });

  // Pauses of at least 250, 500, 1000, 2000 and 4000 ms: no more than five rounds in 7 s, however fast the machine.
  it.concurrent.each([
    { name: 'when the server ends each watch at once', status: 200 },
    { name: 'when the server refuses each watch', status: 500 },
    { name: 'when each watch is from too old a version', status: 410 },
  ])('less and less often $name, although lists succeed', async ({ status }) => {
    await using fleet = await startWatchedFleet();
    fleet.gate.answer({ kind: 'watch' }, status);
    const cache = await fleet.watch(DEFAULTS);
    await sleep(7_000);
    expect(fleet.gate.count({ kind: 'list' })).toBeLessThanOrEqual(5);
    await fleet.create('meanwhile');
    await fleet.gate.pass();
    await fleet.converged(cache);
  });

  it.concurrent('not before the time that it asked for with 429', async () => {
    await using fleet = await startWatchedFleet();
    fleet.gate.answer({ kind: 'watch' }, 429, { times: 1, retryAfterSeconds: 2 });
    const cache = await fleet.watch({ ...IMPATIENT, backoffMaxMillis: 15_000 });
    await fleet.create('meanwhile');
    await fleet.converged(cache);
    expect(fleet.warnings.map(({ message }) => message)).toEqual([
      expect.stringContaining('listing them again in 2000 ms'),
    ]);
  });
});
