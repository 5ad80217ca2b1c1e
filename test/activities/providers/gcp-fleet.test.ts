import { expect, test } from 'vitest';
import type { Provider } from '../../../activities/providers/contract.ts';
import { seededRandom } from '../../e2e/random.ts';
import { type Clock, Life } from '../../workflows/life.ts';
import { gcpWorld, PLACEMENT, takenBy } from './gcp-world.ts';

const FLEET = 60;
const ZONES = ['europe-west1-b', 'europe-west1-c', 'us-central1-a', 'us-central1-f'] as const;

test.each([1, 2, 3])(
  `a fleet whose calls fail one in five is made, moved and deleted exactly (seed %i)`,
  async (seed) => {
    const random = seededRandom(seed);
    const clock: Clock = { now: Date.parse('2026-01-01T00:00:00Z') };
    const { engine, start } = await gcpWorld({
      now: () => clock.now,
      random: () => random.between(0, 999_999) / 1_000_000,
      settings: { insertMillis: 8_000, natMillis: 2_000, deleteMillis: 8_000, listLagMillis: 400, pageSize: 7 },
    });
    const workers = [await start(), await start(), await start()];
    let turn = 0;
    const provider = takenBy(() => workers[turn++ % workers.length] as Provider);
    const place = () => ({ ...PLACEMENT, zone: random.pick(ZONES) });
    const lives = Array.from(
      { length: FLEET },
      (_, i) => new Life({ provider, clock, uid: `p${i}`, placement: place(), zonal: {} }),
    );
    for (const effect of [
      { kind: 'lost' },
      { kind: 'cut' },
      { kind: 'error', status: 503 },
      { kind: 'error', status: 429, reason: 'rateLimitExceeded', retryAfter: 2 },
    ] as const) {
      engine.faults.add({ times: null, probability: 0.055, effect });
    }

    /** Passes of all lives in the order in which they are due, until each of them is where it was to get to. */
    async function until(done: (life: Life) => boolean): Promise<void> {
      const due = new Map(lives.map((life) => [life, clock.now]));
      while (due.size > 0) {
        const [[life, at]] = [...due].sort(([, a], [, b]) => a - b) as [[Life, number], ...unknown[]];
        clock.now = Math.max(clock.now, at);
        await life.nudge();
        expect(engine.state().instances.filter(({ name }) => name === life.name).length).toBeLessThanOrEqual(1);
        if (done(life)) due.delete(life);
        else due.set(life, clock.now + life.wait);
      }
    }

    const began = clock.now;
    await until((life) => life.reason === 'Created');
    expect(engine.state().inserts).toEqual(Object.fromEntries(lives.map(({ name }) => [name, 1])));

    for (const life of lives) life.edit('h1', place());
    await until(
      (life) => life.reason === 'Created' && life.status.providerID?.includes(life.placement.zone ?? '') === true,
    );
    expect(engine.state().inserts).toEqual(Object.fromEntries(lives.map(({ name }) => [name, 2])));
    const made = engine.state().instances.map(({ name, zone }) => `${zone}/${name}`);
    expect(made.sort()).toEqual(lives.map(({ placement, name }) => `${placement.zone}/${name}`).sort());

    for (const life of lives) life.remove();
    await until((life) => !life.finalizer);
    clock.now += 60_000;
    expect(engine.state().instances).toEqual([]);

    const { calls } = engine.state();
    const total = Object.values(calls).reduce((sum, count) => sum + count, 0);
    const minutes = (clock.now - 60_000 - began) / 60_000;
    console.log(`${FLEET} proxies: ${total} calls in ${minutes.toFixed(1)} simulated minutes ${JSON.stringify(calls)}`);
  },
);
