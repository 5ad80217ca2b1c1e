import { type Condition, conditionOf, ProvisionedReason } from './condition.ts';
import type { Phase } from './proxy.ts';

const PHASE_OF_REASON: Record<string, Phase> = {
  [ProvisionedReason.Deleting]: 'Deleting',
  [ProvisionedReason.PermanentError]: 'Failed',
  [ProvisionedReason.Replacing]: 'Replacing',
  [ProvisionedReason.Stopped]: 'Replacing',
  [ProvisionedReason.CloudInitError]: 'Pending',
  [ProvisionedReason.QuotaExceeded]: 'Pending',
};

/** The one word that people read, from the conditions. Nothing may decide on it. */
export function phaseOf(conditions: readonly Condition[] | undefined, deleting: boolean): Phase {
  if (deleting) return 'Deleting';
  const provisioned = conditionOf(conditions, 'Provisioned');
  if (!provisioned) return 'Pending';
  if (provisioned.status !== 'True') return PHASE_OF_REASON[provisioned.reason] ?? 'Provisioning';
  const healthy = conditionOf(conditions, 'Healthy');
  if (healthy?.status === 'True') return 'Ready';
  return healthy?.status === 'False' ? 'Unhealthy' : 'Provisioned';
}
