import fc from 'fast-check';
import { type SweepSettings, sweepProvider } from '../../../activities/sweep/sweep.ts';
import { CLEAR, MINUTE, type Sight, T0, World, type WorldInstance, type WorldProxy } from './world.ts';

export const SETTINGS: SweepSettings = {
  minAgeMillis: 10 * MINUTE,
  maxOrphans: 5,
  dryRun: false,
  blindToNamespaces: false,
};

/** Minutes before the sweep; negative: while it runs or after it. */
const ago = (from: number, to: number) =>
  fc.integer({ min: from * MINUTE, max: to * MINUTE }).map((before) => T0 - before);
/** How far the provider's clock is off. */
const skew = fc.integer({ min: -2 * MINUTE, max: 2 * MINUTE });

/** A CR and its instance, made after it; the CR may be made, deleted or gone in the middle of the sweep. */
const owned = fc
  .record({
    from: ago(-0.2, 120),
    makes: fc.integer({ min: 100, max: 4 * MINUTE }),
    skew,
    namespace: fc.constantFrom('default', 'other'),
    end: fc.option(ago(-0.2, 5), { nil: undefined }),
    deleting: fc.boolean(),
    /** The list may still carry the label of an earlier owner. */
    relabelled: fc.boolean(),
  })
  .map(
    ({ from, makes, skew: off, namespace, end, deleting, relabelled }) =>
      (number: number): [WorldProxy, WorldInstance] => {
        const uid = `live-${number}`;
        const made = from + makes;
        const gone = end !== undefined && end > made ? end : undefined;
        return [
          { uid, namespace, from, ...(gone !== undefined && { to: gone }), ...(deleting && { deletingFrom: made }) },
          {
            id: uid,
            uid,
            from: made,
            createdAt: made + off,
            // A finalizer: the instance goes before its CR does.
            ...(gone !== undefined && { to: gone - 1 }),
            ...(relabelled && { listedUid: `former-${number}` }),
          },
        ];
      },
  );

const unowned = fc
  .record({ from: ago(0, 240), skew, stranger: fc.boolean() })
  .map(({ from, skew: off, stranger }) => (number: number): WorldInstance => {
    const id = `${stranger ? 'stranger' : 'orphan'}-${number}`;
    return { id, uid: stranger ? '' : id, from, createdAt: from + off };
  });

const lags = fc.record({
  listLag: fc.constantFrom(0, 0, 20_000, 3 * MINUTE),
  firstLag: fc.constantFrom(0, 0, 30_000, 20 * MINUTE),
  secondLag: fc.constantFrom(0, 0, 30_000, 5 * MINUTE),
  callMillis: fc.constantFrom(10, 1_000, 5_000),
});
const every = fc.constantFrom(2, 3);

/** Most worlds can be seen whole; the others lack one thing, so that nothing else hides that it is missing. */
const sight: fc.Arbitrary<Sight> = fc
  .tuple(
    lags,
    fc.oneof(
      { weight: 4, arbitrary: fc.constant({}) },
      fc.record({ missingZone: every }),
      fc.record({ missingPage: every }),
      fc.record({ missingPageLater: every }),
      fc.constant({ namespace: 'default' }),
    ),
  )
  .map(([delayed, missing]) => ({ ...delayed, ...missing }));

export const worlds = fc.record({
  owned: fc.array(owned, { maxLength: 8 }),
  unowned: fc.array(unowned, { maxLength: 7 }),
  sight,
});

type Drawn = typeof worlds extends fc.Arbitrary<infer T> ? T : never;

/** What went wrong in one world: nothing, or what was deleted or left that should not have been. */
export async function live(drawn: Drawn, settings: SweepSettings = SETTINGS): Promise<string[]> {
  const pairs = drawn.owned.map((make, index) => make(index));
  const extra = drawn.unowned.map((make, index) => make(index));
  const world = new World(
    pairs.map(([proxy]) => proxy),
    [...pairs.map(([, instance]) => instance), ...extra],
  );
  const sweep = async (at: number, seen: Sight) => {
    world.begin(at, seen);
    const blindToNamespaces = settings.blindToNamespaces || seen.namespace !== undefined;
    await sweepProvider(
      { provider: 'p', orphans: true },
      world.provider(),
      world.deps({ ...settings, blindToNamespaces }),
      new AbortController().signal,
    );
    if (world.deleted.length > SETTINGS.maxOrphans) world.wrong.push(`${world.deleted.length} deleted in one sweep`);
  };
  await sweep(T0, drawn.sight);
  // What was too young then is old enough now; and what was too much at once stays too much.
  const tooMany = () => world.orphansLeft().length > SETTINGS.maxOrphans;
  await sweep(T0 + 20 * MINUTE, CLEAR);
  const spared = tooMany();
  await sweep(T0 + 40 * MINUTE, CLEAR);
  if (!spared) for (const { id } of world.orphansLeft()) world.wrong.push(`${id}: left after two complete sweeps`);
  return world.wrong;
}
