import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { conditionOf } from '../../model/condition.ts';
import { type Happening, happen, happening, type World, ZONES } from './happenings.ts';
import { Life } from './life.ts';
import { MemoryProvider } from './memory-provider.ts';

const RUNS = 3_000;
const TIMEOUT_MILLIS = 60_000;
const BEGINNING = Date.parse('2026-01-01T00:00:00Z');

/** Lets everything happen, with passes in between as they come; then heals the world and lets it settle. */
async function live(happenings: Happening[], zonal: boolean): Promise<World> {
  const clock = { now: BEGINNING };
  const provider = new MemoryProvider(clock, zonal);
  const life = new Life({
    provider,
    clock,
    ...(zonal && { zonal: { defaultZone: 'zb' }, placement: { zone: ZONES[0] } }),
  });
  const world: World = { life, provider, clock };
  const doubled = () => {
    if (provider.instances.length > 1) life.violations.push('two instances');
  };
  for (const next of happenings) {
    if (!life.exists) break;
    happen(world, next);
    await life.nudge();
    doubled();
  }
  provider.heal();
  Object.assign(life, { secret: true, configured: true, loss: undefined, overtaking: undefined });
  // What a permanent error waits for.
  life.generation += 1;
  for (let wait = 0; wait < 30; wait += 1) {
    await life.nudge();
    doubled();
    clock.now += life.wait;
  }
  return world;
}

/** Spec §9, on a world that had the time to settle. */
function check({ life, provider }: World): void {
  const story = life.story.join('\n');
  expect(life.violations, story).toEqual([]);
  const [instance] = provider.instances;
  if (!life.exists || life.deleting) {
    expect(life.exists, `a stuck finalizer\n${story}`).toBe(false);
    expect(instance, `an instance without a CR\n${story}`).toBeUndefined();
    return;
  }
  expect(instance, `no instance\n${story}`).toMatchObject({ state: 'Running', specHash: life.hash });
  expect(life.recordedHash, story).toBe(life.hash);
  expect(life.status, story).toMatchObject({ providerID: instance?.providerID, ip: instance?.ip });
  expect(life.status.zone ?? '', story).toBe(instance?.providerID.split('/')[2]);
  expect(conditionOf(life.status.conditions, 'Provisioned'), story).toMatchObject({
    status: 'True',
    reason: 'Created',
  });
}

/** What the random lives found, once: each ended badly before a rule was mended. */
const KNOWN_LIVES: [string, Happening[]][] = [
  [
    'a create whose answer was lost, then another zone before a list shows what it made',
    [
      { what: 'faults', call: 'create', faults: ['lost', 'Permanent'] },
      { what: 'move', zone: 'zb' },
    ],
  ],
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

describe.each([
  ['without zones', false],
  ['with zones', true],
])('whatever happens to a proxy and its provider, %s', (_, zonal) => {
  it(
    `nothing of what may never happen does, and all is well in the end (${RUNS} random lives)`,
    () =>
      fc.assert(
        fc.asyncProperty(fc.array(happening, { maxLength: 25 }), async (happenings) =>
          check(await live(happenings, zonal)),
        ),
        { numRuns: RUNS },
      ),
    TIMEOUT_MILLIS,
  );

  it.each(KNOWN_LIVES)('%s', async (_, happenings) => {
    check(await live(happenings, zonal));
    check(await live([...happenings, { what: 'delete' }], zonal));
  });

  it(
    'a random life ends well too when it ends with a deletion',
    () =>
      fc.assert(
        fc.asyncProperty(fc.array(happening, { maxLength: 25 }), async (happenings) =>
          check(await live([...happenings, { what: 'delete' }], zonal)),
        ),
        { numRuns: RUNS },
      ),
    TIMEOUT_MILLIS,
  );
});
