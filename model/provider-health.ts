/** Names of the cluster-scoped `ProviderHealth` resource: one object per configured provider instance. */
export const PROVIDER_HEALTHS = 'providerhealths';

export interface ProviderHealthStatus {
  instances?: number;
  orphans?: number;
  consecutiveFailures?: number;
  /** RFC 3339. */
  lastSuccessTime?: string;
  /** RFC 3339. */
  lastCheckTime?: string;
  conditions?: {
    type: 'Available';
    status: 'True' | 'False' | 'Unknown';
    /** `Available`, or a class of the error taxonomy. */
    reason: string;
    message: string;
    observedGeneration?: number;
    lastTransitionTime: string;
  }[];
}
