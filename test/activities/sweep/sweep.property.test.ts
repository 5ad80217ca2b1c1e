import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { SECOND_LOOK, SUSPECT, WHOLE_VIEW } from '../../../activities/sweep/orphan.ts';
import { live, SETTINGS, worlds } from './trial.ts';

const WORLDS = process.env.SWEEPS === 'full' ? 30_000 : 3_000;

/** How many random worlds it takes to find one that goes wrong; undefined when none of them does. */
async function worldsUntilWrong(settings = SETTINGS): Promise<number | undefined> {
  const property = fc.asyncProperty(worlds, async (drawn) => {
    const wrong = await live(drawn, settings);
    expect(wrong).toEqual([]);
  });
  const { failed, numRuns } = await fc.check(property, { numRuns: WORLDS, endOnFailure: true });
  return failed ? numRuns : undefined;
}

describe('sweeps', () => {
  it(`delete no live instance and leave no orphan, in ${WORLDS} random worlds`, async () => {
    await fc.assert(
      fc.asyncProperty(worlds, async (drawn) => {
        expect(await live(drawn)).toEqual([]);
      }),
      { numRuns: WORLDS },
    );
  }, 300_000);
});

type Conditions = Record<string, (...looked: never[]) => boolean>;

describe('each condition of the contract is needed: without it, some world goes wrong', () => {
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

  const named = [WHOLE_VIEW, SUSPECT, SECOND_LOOK].flatMap((conditions: Conditions) =>
    Object.keys(conditions).map((name) => [name, conditions] as const),
  );
  it.each(named)(
    '%s',
    async (name, conditions) => {
      without(conditions, name);
      expect(await worldsUntilWrong()).toBeDefined();
    },
    120_000,
  );

  it('at most so many per sweep', async () => {
    expect(await worldsUntilWrong({ ...SETTINGS, maxOrphans: Number.POSITIVE_INFINITY })).toBeDefined();
  }, 120_000);
});
