import type { Condition } from './condition.ts';

/** Names of the cluster-scoped `ProviderHealth` resource: one object per configured provider instance, of its name. */
export const PROVIDER_HEALTHS = 'providerhealths';

/**
 * - `Available`: the last sweep could list the provider; else the reason is the class of the error.
 * - `OrphansCollected`: no instance is left that no Proxy owns; else the reason says why it was spared.
 */
export type ProviderHealthCondition = Condition<'Available' | 'OrphansCollected'>;

export interface ProviderHealthStatus {
  /** Instances of ours that the provider listed. */
  instances?: number;
  /** Those of them that belong to no Proxy. */
  orphans?: number;
  /** Sweeps in a row that could not list the provider. */
  consecutiveFailures?: number;
  /** RFC 3339. */
  lastSuccessTime?: string;
  /** RFC 3339. */
  lastCheckTime?: string;
  conditions?: ProviderHealthCondition[];
}

/** The resource as the API server returns it. */
export interface ProviderHealth {
  metadata: { name: string; namespace: string; uid: string; resourceVersion: string };
  status?: ProviderHealthStatus;
}
