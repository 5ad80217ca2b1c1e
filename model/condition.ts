/** A condition in the standard metav1 shape. `lastTransitionTime` is RFC 3339 with seconds. */
export interface Condition<Type extends string = ConditionType> {
  type: Type;
  status: ConditionStatus;
  reason: string;
  message: string;
  observedGeneration: number;
  lastTransitionTime: string;
}

export type ConditionType = 'Provisioned' | 'Healthy';
export type ConditionStatus = 'True' | 'False' | 'Unknown';

/** What a step has to say about a condition; the writer adds generation and transition time. */
export type Statement = Pick<Condition, 'status' | 'reason' | 'message'>;

/** Reasons of `Provisioned`. Part of the API: `kubectl wait` and alerts name them. */
export const ProvisionedReason = {
  Created: 'Created',
  ExternalEndpoint: 'ExternalEndpoint',
  Creating: 'Creating',
  Provisioning: 'Provisioning',
  ProvisioningTimeout: 'ProvisioningTimeout',
  Replacing: 'Replacing',
  Stopped: 'Stopped',
  Deleting: 'Deleting',
  Abandoned: 'Abandoned',
  CloudInitError: 'CloudInitError',
  QuotaExceeded: 'QuotaExceeded',
  PermanentError: 'PermanentError',
  RateLimited: 'RateLimited',
  TransientError: 'TransientError',
} as const;

/** Reasons of `Healthy`. */
export const HealthyReason = {
  ProbeSucceeded: 'ProbeSucceeded',
  ProbeFailed: 'ProbeFailed',
  NotProbed: 'NotProbed',
  /** Probes fail, but so does a direct one: the verdict from before holds. */
  TargetDown: 'TargetDown',
} as const;

export const conditionOf = <Type extends string>(
  conditions: readonly Condition<Type>[] | undefined,
  type: Type,
): Condition<Type> | undefined => conditions?.find((condition) => condition.type === type);

/** RFC 3339 in whole seconds, as metav1.Time is written. */
export const metaTime = (millis: number): string => `${new Date(millis).toISOString().slice(0, 19)}Z`;

/** The list with one condition stated anew; the transition time moves only when the status does. */
export function withCondition<Type extends string = ConditionType>(
  conditions: readonly Condition<Type>[] | undefined,
  type: Type,
  statement: Statement,
  observedGeneration: number,
  now: number,
): Condition<Type>[] {
  const before = conditionOf(conditions, type);
  const lastTransitionTime = before?.status === statement.status ? before.lastTransitionTime : metaTime(now);
  const stated: Condition<Type> = { type, ...statement, observedGeneration, lastTransitionTime };
  const others = (conditions ?? []).filter((condition) => condition.type !== type);
  return [...others, stated].sort((a, b) => (a.type < b.type ? 1 : -1));
}
