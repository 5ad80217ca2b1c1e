import fc from 'fast-check';
import { afterEach, describe, expect } from 'vitest';
import { SECOND_LOOK, SUSPECT, WHOLE_VIEW } from '../../../activities/sweep/orphan.ts';
import { faultTest, repetitions } from '../../faults/fault.ts';
import { live, SETTINGS, worlds } from './trial.ts';

const WORLDS = repetitions(3_000, 30_000);
const TIMEOUT_MILLIS = 300_000;

/** How many random worlds it takes to find one that goes wrong; undefined when none of them does. */
async function worldsUntilWrong(settings = SETTINGS): Promise<number | undefined> {
  const property = fc.asyncProperty(worlds, async (drawn) => {
    expect(await live(drawn, settings)).toEqual([]);
  });
  const { failed, numRuns } = await fc.check(property, { numRuns: WORLDS, endOnFailure: true });
  return failed ? numRuns : undefined;
}

describe('sweeps', () => {
  faultTest(
    {
      fault: 'sweep: partial pages, zones down, lists that lag, namespaces unseen, clocks apart',
      times: WORLDS,
      checked: 'no live instance deleted, every orphan gone within two complete sweeps',
    },
    async () => {
      const property = fc.asyncProperty(worlds, async (drawn) => {
        expect(await live(drawn)).toEqual([]);
      });
      await fc.assert(property, { numRuns: WORLDS });
    },
    TIMEOUT_MILLIS,
  );
});

type Conditions = Record<string, (...looked: never[]) => boolean>;

describe('each condition of the contract is needed', () => {
  const restore: (() => void)[] = [];
  afterEach(() => {
    for (const undo of restore.splice(0)) undo();
  });

  function without(conditions: Conditions, name: string): void {
    const original = conditions[name] as Conditions[string];
    restore.push(() => {
      conditions[name] = original;
    });
    conditions[name] = () => true;
  }

  /** One row per condition: how many worlds it took to miss it. */
  function missed(condition: string, remove: () => void, settings = SETTINGS): void {
    const row = { fault: `condition removed: ${condition}`, times: 0, checked: 'a random world goes wrong' };
    faultTest(
      row,
      async (counted) => {
        remove();
        const until = await worldsUntilWrong(settings);
        expect(until).toBeDefined();
        counted.times = until ?? 0;
      },
      TIMEOUT_MILLIS,
    );
  }

  for (const conditions of [WHOLE_VIEW, SUSPECT, SECOND_LOOK] as Conditions[]) {
    for (const name of Object.keys(conditions)) missed(name, () => without(conditions, name));
  }
  missed('at most so many per sweep', () => {}, { ...SETTINGS, maxOrphans: Number.POSITIVE_INFINITY });
});
