import fc from 'fast-check';
import type { InstanceState } from '../../model/instance.ts';
import type { Clock, Life } from './life.ts';
import type { Call, CallFault, MemoryProvider } from './memory-provider.ts';

/** Of which the first is the one that each life begins in. */
export const ZONES = ['za', 'zb', 'zc'] as const;
type Zone = (typeof ZONES)[number];

/** Something that happens to the world between two passes, or that the next calls will meet. */
export type Happening =
  | { what: 'edit'; hash: string }
  /** Of spec.placement.zone, and so of the hash as well. */
  | { what: 'move'; zone: Zone }
  /** Of spec.placement.zones alone. */
  | { what: 'fall back on'; zones: Zone[] }
  | { what: 'overtake'; attempt: number; hash: string }
  | { what: 'touch' }
  | { what: 'delete' }
  | { what: 'replace' }
  | { what: 'secret'; present: boolean }
  | { what: 'configured'; configured: boolean }
  | { what: 'vanish' }
  | { what: 'state'; state: InstanceState }
  | { what: 'readdress' }
  | { what: 'boots'; state: InstanceState }
  | { what: 'lingers'; polls: number }
  /** No machines are left in the zone, as a create learns at once, or later; or there are some again. */
  | { what: 'exhausted'; zone: Zone | ''; learned: 'at once' | 'later' | 'never' }
  /** The next calls of this kind go wrong, one fault each. */
  | { what: 'faults'; call: Call; faults: CallFault[] }
  | { what: 'annotation removed' }
  /** Temporal forgets it in the middle of its next report: with nothing written, or the hash annotation alone. */
  | { what: 'workflow lost before report'; annotated: boolean }
  /** Temporal forgets the workflow: the next pass is a new one's first. */
  | { what: 'workflow lost' }
  | { what: 'wait' }
  | { what: 'wait long' };

const hash = fc.constantFrom('h0', 'h1', 'h2');
const zone = fc.constantFrom(...ZONES);
const state = fc.constantFrom<InstanceState>('Provisioning', 'Running', 'Stopped');
const call = fc.constantFrom<Call>('create', 'create', 'get', 'delete');
const fault = fc.constantFrom<CallFault>('Transient', 'lost', 'lost', 'Permanent', 'QuotaExceeded', 'RateLimited');

const one = <W extends Happening['what']>(what: W, members: object = {}) =>
  fc.record({ what: fc.constant(what), ...members }) as fc.Arbitrary<Happening>;

export const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 3, arbitrary: one('edit', { hash }) },
  { weight: 2, arbitrary: one('move', { zone }) },
  { weight: 2, arbitrary: one('fall back on', { zones: fc.uniqueArray(zone, { maxLength: 3 }) }) },
  { weight: 1, arbitrary: one('overtake', { attempt: fc.integer({ min: 1, max: 3 }), hash }) },
  { weight: 1, arbitrary: one('touch') },
  { weight: 1, arbitrary: one('delete') },
  { weight: 1, arbitrary: one('replace') },
  { weight: 1, arbitrary: one('secret', { present: fc.boolean() }) },
  { weight: 1, arbitrary: one('configured', { configured: fc.boolean() }) },
  { weight: 1, arbitrary: one('vanish') },
  { weight: 2, arbitrary: one('state', { state }) },
  { weight: 1, arbitrary: one('readdress') },
  { weight: 1, arbitrary: one('boots', { state }) },
  { weight: 1, arbitrary: one('lingers', { polls: fc.nat(2) }) },
  {
    weight: 2,
    arbitrary: one('exhausted', {
      zone: fc.constantFrom(...ZONES, ''),
      learned: fc.constantFrom('at once', 'later', 'never'),
    }),
  },
  { weight: 5, arbitrary: one('faults', { call, faults: fc.array(fault, { minLength: 1, maxLength: 6 }) }) },
  { weight: 1, arbitrary: one('annotation removed') },
  { weight: 1, arbitrary: one('workflow lost') },
  { weight: 1, arbitrary: one('workflow lost before report', { annotated: fc.boolean() }) },
  { weight: 3, arbitrary: one('wait') },
  { weight: 1, arbitrary: one('wait long') },
);

/** Where it happens. */
export interface World {
  life: Life;
  provider: MemoryProvider;
  clock: Clock;
}

type Effects = {
  [W in Happening['what']]: (world: World, happening: Extract<Happening, { what: W }>) => void;
};

const EFFECTS: Effects = {
  edit: ({ life }, { hash }) => change(life, hash),
  move: ({ life }, { zone }) => {
    life.placement = { ...life.placement, zone };
    change(life, life.hash);
  },
  'fall back on': ({ life }, { zones }) => life.edit(life.hash, { ...life.placement, zones }),
  overtake: ({ life }, { attempt, hash }) => {
    life.overtaking = { attempt, edit: () => change(life, hash) };
  },
  touch: ({ life }) => life.edit(life.hash),
  delete: ({ life }) => life.remove(),
  replace: ({ life }) => {
    life.replace = true;
  },
  secret: ({ life }, { present }) => {
    life.secret = present;
  },
  configured: ({ life }, { configured }) => {
    life.configured = configured;
  },
  vanish: ({ provider }) => provider.machines.clear(),
  state: ({ provider }, { state }) => {
    for (const instance of provider.instances) instance.state = state;
  },
  readdress: ({ provider }) => {
    for (const instance of provider.instances) instance.ip = `10.1.0.${provider.made}`;
  },
  boots: ({ provider }, { state }) => {
    provider.boots = state;
  },
  lingers: ({ provider }, { polls }) => {
    provider.lingers = polls;
  },
  exhausted: ({ provider }, { zone, learned }) => {
    if (learned === 'never') provider.exhausted.delete(zone);
    else provider.exhausted.set(zone, learned);
  },
  faults: ({ provider }, { call, faults }) => {
    provider.faults[call].push(...faults);
  },
  'annotation removed': ({ life }) => {
    life.recordedHash = undefined;
  },
  'workflow lost before report': ({ life }, { annotated }) => {
    life.loss = { annotated };
  },
  'workflow lost': ({ life }) => life.forget(),
  wait: ({ life, clock }) => {
    clock.now += life.wait;
  },
  'wait long': ({ clock }) => {
    clock.now += 20 * 60_000;
  },
};

export function happen(world: World, happening: Happening): void {
  world.life.story.push(JSON.stringify(happening));
  const effect = EFFECTS[happening.what] as (world: World, happening: Happening) => void;
  effect(world, happening);
}

/** An edit of what an instance is made from; its zone is a part of that. */
function change(life: Life, hash: string): void {
  const [text] = hash.split('@');
  const wanted = `${text}@${life.placement.zone ?? ''}`;
  if (wanted !== life.hash) life.edit(wanted);
}
