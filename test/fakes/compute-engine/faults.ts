import { z } from 'zod';

/** The calls that this server knows, by the names of the REST reference. */
export const CALLS = [
  'instances.insert',
  'instances.get',
  'instances.delete',
  'instances.aggregatedList',
  'zoneOperations.get',
  'zoneOperations.list',
  'addresses.list',
] as const;
export type Call = (typeof CALLS)[number];

const effect = z.discriminatedUnion('kind', [
  /** The call is refused, and does nothing. `retryAfter` in seconds. */
  z.strictObject({
    kind: z.literal('error'),
    status: z.int().min(400).max(599),
    reason: z.string().default('backendError'),
    message: z.string().default('Injected error'),
    retryAfter: z.number().min(0).optional(),
  }),
  /** The call does its work, and the connection is cut instead of an answer. */
  z.strictObject({ kind: z.literal('lost') }),
  /** The connection is cut before anything is done. */
  z.strictObject({ kind: z.literal('cut') }),
  /** The answer comes late. */
  z.strictObject({ kind: z.literal('delay'), millis: z.number().min(0) }),
  /** An insert or delete is accepted, and its operation fails. */
  z.strictObject({
    kind: z.literal('operationError'),
    code: z.string(),
    message: z.string().default('Injected failure of the operation'),
    status: z.int().default(503),
  }),
]);

export const faultRule = z.strictObject({
  call: z.union([z.enum(CALLS), z.literal('*')]).default('*'),
  /** Only calls about this resource, or in this zone. */
  name: z.string().optional(),
  zone: z.string().optional(),
  /** How often; null: until it is removed. */
  times: z.int().min(1).nullable().default(1),
  /** Of the calls that match, the part that is hit. */
  probability: z.number().min(0).max(1).default(1),
  effect,
});

export type FaultRule = z.output<typeof faultRule>;
export type FaultEffect = FaultRule['effect'];

export interface Faults {
  add(rule: z.input<typeof faultRule>): void;
  clear(): void;
  /** How often each kind of effect has hit. */
  readonly hits: Readonly<Record<string, number>>;
  /** The effect on this call, if one is due; counts it. */
  hit(call: Call, zone: string | undefined, name: string | undefined): FaultEffect | undefined;
}

/** @param random in [0, 1) */
export function createFaults(random: () => number): Faults {
  let rules: FaultRule[] = [];
  const hits: Record<string, number> = {};
  return {
    hits,
    add: (rule) => void rules.push(faultRule.parse(rule)),
    clear() {
      rules = [];
    },
    hit(call, zone, name) {
      const due = rules.find(
        (rule) =>
          (rule.call === '*' || rule.call === call) &&
          (rule.name === undefined || rule.name === name) &&
          (rule.zone === undefined || rule.zone === zone) &&
          random() < rule.probability,
      );
      if (due?.times) {
        due.times -= 1;
        if (due.times === 0) rules = rules.filter((rule) => rule !== due);
      }
      if (due) hits[due.effect.kind] = (hits[due.effect.kind] ?? 0) + 1;
      return due?.effect;
    },
  };
}
