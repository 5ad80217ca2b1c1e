import { describe, expect, it } from 'vitest';
import type { ApiServerGate } from '../api-server-gate.ts';
import { eventually, IMPATIENT, startWatchedFleet } from './watched-fleet.ts';

interface Outage {
  name: string;
  begin(gate: ApiServerGate): unknown;
  /** It ends before the client can have noticed. */
  brief?: true;
}

const everyAnswer = (status: number, retryAfterSeconds?: number): Outage['begin'] => {
  return (gate) => {
    gate.answer({}, status, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
    gate.cut();
  };
};

const OUTAGES: Outage[] = [
  { name: 'a half-open connection', begin: (gate) => gate.blackHole() },
  { name: 'a half-open connection that nobody has noticed yet', begin: (gate) => gate.blackHole(), brief: true },
  { name: 'a cut connection', begin: (gate) => gate.cut(), brief: true },
  { name: 'a server that refuses connections', begin: (gate) => gate.refuse() },
  { name: 'HTTP 401', begin: everyAnswer(401) },
  { name: 'HTTP 403', begin: everyAnswer(403) },
  { name: 'HTTP 410', begin: everyAnswer(410) },
  { name: 'HTTP 429 with Retry-After', begin: everyAnswer(429, 1) },
  { name: 'HTTP 500', begin: everyAnswer(500) },
  {
    name: 'HTTP 410 for each watch',
    begin(gate) {
      gate.answer({ kind: 'watch' }, 410);
      gate.cut();
    },
  },
  {
    name: 'watches that end as soon as they begin',
    begin(gate) {
      gate.answer({ kind: 'watch' }, 200);
      gate.cut();
    },
  },
  {
    name: 'a 410 within the stream, and no list after it',
    begin(gate) {
      gate.answer({ kind: 'list' }, 500);
      expect(gate.sendError({ kind: 'watch' }, 410)).toBe(1);
    },
  },
  {
    name: 'a 500 within the stream, and no list after it',
    begin(gate) {
      gate.answer({ kind: 'list' }, 500);
      expect(gate.sendError({ kind: 'watch' }, 500)).toBe(1);
    },
  },
  {
    name: 'lists whose answers are lost',
    begin(gate) {
      gate.loseAnswer({ kind: 'list' });
      gate.cut();
    },
  },
  {
    name: 'lists that are not answered in time',
    begin(gate) {
      gate.delay({ kind: 'list' }, 3_000);
      gate.cut();
    },
  },
];

describe('what was missed is acted on after', () => {
  it.concurrent.each(OUTAGES)('$name', async ({ begin, brief }) => {
    await using fleet = await startWatchedFleet();
    const [deleted, recreated] = await Promise.all(
      ['deleted', 'recreated', 'edited'].map((name) => fleet.create(name)),
    );
    const cache = await fleet.watch(IMPATIENT);
    await fleet.converged(cache);
    // Let the watch be one that has begun, not one about to begin.
    await fleet.edit('edited', { edit: 'first' });
    await fleet.converged(cache);
    fleet.heard.length = 0;

    await begin(fleet.gate);
    await Promise.all([
      fleet.create('created'),
      fleet.edit('edited', { edit: 'second' }),
      fleet.remove('deleted'),
      fleet.remove('recreated').then(() => fleet.create('recreated')),
    ]);
    if (!brief) await eventually(() => expect(fleet.warnings).not.toEqual([]));
    await fleet.gate.pass();

    await fleet.converged(cache);
    const again = [...cache.all()].find(({ metadata }) => metadata.name === 'recreated');
    expect(fleet.heard.filter((line) => !line.startsWith('changed recreated'))).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^changed created /),
        expect.stringMatching(/^changed edited /),
        `removed deleted ${deleted?.metadata.uid}`,
        `removed recreated ${recreated?.metadata.uid}`,
      ]),
    );
    expect(again?.metadata.uid).not.toBe(recreated?.metadata.uid);
    const removal = fleet.heard.indexOf(`removed recreated ${recreated?.metadata.uid}`);
    expect(fleet.heard.indexOf(`changed recreated ${again?.metadata.uid}`)).toBeGreaterThan(removal);
  });

  it.concurrent('a half-open connection within one relist interval, however long silence is put up with', async () => {
    await using fleet = await startWatchedFleet();
    const cache = await fleet.watch({ relistMillis: 3_000 });
    await fleet.converged(cache);
    fleet.gate.blackHole();
    await fleet.create('created');
    await fleet.gate.pass();
    await fleet.converged(cache);
  });
});
