import { expect, test } from 'vitest';
import type { Provider } from '../../../activities/providers/contract.ts';
import { type Clock, Life } from '../../workflows/life.ts';
import { gcpWorld, PLACEMENT, takenBy, ZONE } from './gcp-world.ts';

const FALLBACK = 'europe-west1-c';

/** One Proxy whose calls are taken by one worker or the other, as the test has it. */
async function world() {
  const clock: Clock = { now: Date.parse('2026-01-01T00:00:00Z') };
  const { engine, start } = await gcpWorld({
    now: () => clock.now,
    settings: { insertMillis: 3_000, deleteMillis: 3_000 },
  });
  const workers = [await start(), await start()];
  const turn = { worker: 0 };
  const provider = takenBy(() => workers[turn.worker] as Provider);
  const life = new Life({ provider, clock, placement: PLACEMENT, zonal: {} });
  /** What is made from here on can't be seen for long. */
  const hide = () => Object.assign(engine.settings, { visibleMillis: 20_000, insertMillis: 30_000 });
  return { engine, life, turn, hide };
}

test('a VM that another worker has begun to make since a deletion is not taken for what was deleted', async () => {
  const { engine, life, turn, hide } = await world();
  life.placement = { ...PLACEMENT, zones: [FALLBACK] };
  engine.settings.stockouts = { [ZONE]: 'ZONE_RESOURCE_POOL_EXHAUSTED' };
  await life.nudge();
  await life.go(2);
  expect(life).toMatchObject({ reason: 'Created', status: { zone: FALLBACK } });
  life.replace = true;
  await life.nudge();
  turn.worker = 1;
  await life.go();
  // The preferred zone is tried again first, in vain.
  hide();
  await life.go();
  expect(life).toMatchObject({ reason: 'Provisioning', status: { zone: FALLBACK } });
  engine.settings.stockouts = {};
  turn.worker = 0;
  for (let waits = 0; waits < 15; waits += 1) {
    await life.go();
    expect(engine.state().instances.length).toBe(1);
  }
  expect(life).toMatchObject({ reason: 'Created', status: { zone: FALLBACK } });
});

test('nor is it left behind, when the Proxy is deleted before it can be seen', async () => {
  const { engine, life, turn, hide } = await world();
  await life.nudge();
  await life.go();
  hide();
  life.replace = true;
  await life.nudge();
  turn.worker = 1;
  await life.go();
  expect(life.reason).toBe('Provisioning');
  turn.worker = 0;
  life.remove();
  await life.nudge();
  await life.go(20);
  expect(life.exists).toBe(false);
  expect(engine.state().instances).toEqual([]);
});
