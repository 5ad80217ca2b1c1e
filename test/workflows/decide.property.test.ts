import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { conditionOf } from '../../model/condition.ts';
import { type CallFault, type Happening, Simulation } from './simulation.ts';

const RUNS = 5_000;

const hash = fc.constantFrom('h0', 'h1', 'h2');
const state = fc.constantFrom('Provisioning', 'Running', 'Stopped') as fc.Arbitrary<
  'Provisioning' | 'Running' | 'Stopped'
>;
const fault = fc.constantFrom<CallFault>('Transient', 'lost', 'lost', 'Permanent', 'QuotaExceeded', 'RateLimited');

const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 3, arbitrary: hash.map((value): Happening => ({ what: 'edit', hash: value })) },
  { weight: 1, arbitrary: fc.constant<Happening>({ what: 'touch' }) },
  { weight: 1, arbitrary: fc.constant<Happening>({ what: 'delete' }) },
  { weight: 1, arbitrary: fc.constant<Happening>({ what: 'replace' }) },
  { weight: 1, arbitrary: fc.boolean().map((present): Happening => ({ what: 'secret', present })) },
  { weight: 1, arbitrary: fc.boolean().map((configured): Happening => ({ what: 'configured', configured })) },
  { weight: 1, arbitrary: fc.constant<Happening>({ what: 'vanish' }) },
  { weight: 2, arbitrary: state.map((value): Happening => ({ what: 'state', state: value })) },
  { weight: 1, arbitrary: fc.constant<Happening>({ what: 'readdress' }) },
  { weight: 1, arbitrary: state.map((value): Happening => ({ what: 'boots', state: value })) },
  { weight: 1, arbitrary: fc.nat(2).map((polls): Happening => ({ what: 'lingers', polls })) },
  {
    weight: 5,
    arbitrary: fc.record({
      what: fc.constant('faults' as const),
      call: fc.constantFrom('create' as const, 'create' as const, 'get' as const, 'delete' as const),
      faults: fc.array(fault, { minLength: 1, maxLength: 6 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant<Happening>({ what: 'annotation removed' }) },
  { weight: 1, arbitrary: fc.constant<Happening>({ what: 'workflow lost' }) },
  {
    weight: 1,
    arbitrary: fc.boolean().map((annotated): Happening => ({ what: 'workflow lost before report', annotated })),
  },
  { weight: 3, arbitrary: fc.constant<Happening>({ what: 'wait' }) },
  { weight: 1, arbitrary: fc.constant<Happening>({ what: 'wait long' }) },
);

/** Lets everything happen, with passes in between as they come; then heals the world and lets it settle. */
function live(happenings: Happening[]): Simulation {
  const world = new Simulation();
  for (const next of happenings) {
    if (!world.crExists) break;
    world.happen(next);
    world.run(0);
  }
  world.heal();
  world.run(30);
  return world;
}

/** Spec §9, on a world that had the time to settle. */
function check(world: Simulation): void {
  const story = world.timeline.join('\n');
  expect(world.violations, story).toEqual([]);
  const { wanted, said, instance } = world;
  if (wanted.deleting) {
    expect(world.crExists, `a stuck finalizer\n${story}`).toBe(false);
    expect(instance, `an instance without a CR\n${story}`).toBeUndefined();
    return;
  }
  expect(instance, `no instance\n${story}`).toMatchObject({ state: 'Running', specHash: wanted.hash });
  expect(said.recordedHash, story).toBe(wanted.hash);
  expect(said.status, story).toMatchObject({ providerID: instance?.providerID, ip: instance?.ip });
  expect(conditionOf(said.status.conditions, 'Provisioned'), story).toMatchObject({
    status: 'True',
    reason: 'Created',
  });
}

/** What the random lives found, once: each ended badly before a rule was mended. */
const KNOWN_LIVES: [string, Happening[]][] = [
  [
    'instances that die as soon as they run',
    [
      { what: 'boots', state: 'Stopped' },
      { what: 'edit', hash: 'h2' },
    ],
  ],
  [
    'a create whose answer was lost, then one that was refused',
    [{ what: 'faults', call: 'create', faults: ['lost', 'Permanent'] }, { what: 'touch' }, { what: 'wait' }],
  ],
  [
    'the same, and a workflow that knows only the status',
    [{ what: 'faults', call: 'create', faults: ['lost', 'Permanent'] }, { what: 'wait' }, { what: 'workflow lost' }],
  ],
  [
    'a refusal in the status, and a later try whose answer and workflow were lost',
    [
      { what: 'faults', call: 'create', faults: ['Permanent', 'lost', 'Permanent'] },
      { what: 'workflow lost before report', annotated: false },
      { what: 'edit', hash: 'h1' },
    ],
  ],
  [
    'a lost answer, and a provider that left the configuration',
    [
      { what: 'faults', call: 'create', faults: ['lost'] },
      { what: 'configured', configured: false },
      { what: 'workflow lost' },
      { what: 'replace' },
    ],
  ],
];

describe('whatever happens to a proxy and its provider', () => {
  it(`nothing of what may never happen does, and all is well in the end (${RUNS} random lives)`, () => {
    fc.assert(
      fc.property(fc.array(happening, { maxLength: 25 }), (happenings) => check(live(happenings))),
      { numRuns: RUNS },
    );
  });

  it.each(KNOWN_LIVES)('%s', (_, happenings) => {
    check(live(happenings));
    check(live([...happenings, { what: 'delete' }]));
  });

  it('a random life ends well too when it ends with a deletion', () => {
    fc.assert(
      fc.property(fc.array(happening, { maxLength: 25 }), (happenings) =>
        check(live([...happenings, { what: 'delete' }])),
      ),
      { numRuns: RUNS },
    );
  });
});
