import type { Condition } from './condition.ts';

/** Names under which the `Proxy` resource and what belongs to it are known to Kubernetes. */
export const GROUP = 'crawl.example.com';
export const VERSION = 'v1alpha1';
export const PROXIES = 'proxies';
/** Keeps a CR until the instance behind it is gone. */
export const FINALIZER = `${GROUP}/instance`;
/** The spec hash that the current instance was made from. */
export const HASH_ANNOTATION = `${GROUP}/spec-hash`;
/**
 * A person's way out when a Proxy can't be deleted because its provider is gone for good: set to the instance's name, it
 * lets the Proxy go and leaves the instance behind.
 */
export const ABANDON_ANNOTATION = `${GROUP}/abandon-instance`;
/** Only Secrets with these labels (value `"true"`) are ever read. */
export const CLOUD_INIT_LABEL = `${GROUP}/cloud-init`;
export const CREDENTIALS_LABEL = `${GROUP}/credentials`;

export const DEFAULT_SQUID_PORT = 3128;

/** Where and on what an instance runs; each provider says which of these it needs. */
export interface Placement {
  zone?: string;
  /** Where to go on to, in this order, when `zone` has run out of machines. A change never replaces an instance. */
  zones?: string[];
  machineType?: string;
  image?: string;
  network?: string;
  subnetwork?: string;
  diskGB?: number;
  labels?: Record<string, string>;
}

/** The placement for an instance in the zone that its Proxy's status names. */
export const placedIn = (placement: Placement, { zone }: Pick<ProxyStatus, 'zone'>): Placement =>
  zone === undefined ? placement : { ...placement, zone };

export type CloudInit = { inline: string } | { secretRef: { name: string; key: string } };

export interface Endpoint {
  host: string;
  port?: number;
  /** Secret in the same namespace with the keys `username` and `password`. */
  credentialsSecretRef?: { name: string };
}

/** `spec.health`; the API server has filled in every default but `url` (see {@link HEALTH_DEFAULTS}). */
export interface HealthSpec {
  /** What a probe fetches through the proxy; without one, the orchestrator's configured probe URL. */
  url?: string;
  expectedStatus: number;
  intervalSeconds: number;
  timeoutSeconds: number;
  successThreshold: number;
  failureThreshold: number;
  /** PEM certificates trusted for an https `url`, besides the system's. */
  caBundle?: string;
}

export const HEALTH_DEFAULTS: HealthSpec = {
  expectedStatus: 200,
  intervalSeconds: 30,
  timeoutSeconds: 10,
  successThreshold: 1,
  failureThreshold: 3,
};

interface CommonSpec {
  port?: number;
  attributes?: Record<string, string>;
  lease?: { maxConcurrent?: number };
  cordoned?: boolean;
  health?: Partial<HealthSpec>;
}

export interface ManagedSpec extends CommonSpec {
  mode?: 'Managed';
  provider: string;
  placement?: Placement;
  cloudInit?: CloudInit;
}

export interface ExternalSpec extends CommonSpec {
  mode: 'External';
  endpoint: Endpoint;
}

export type ProxySpec = ManagedSpec | ExternalSpec;

/** For people to read; computed from the conditions, and nothing else decides on it. */
export type Phase =
  | 'Pending'
  | 'Provisioning'
  | 'Provisioned'
  | 'Ready'
  | 'Unhealthy'
  | 'Replacing'
  | 'Deleting'
  | 'Failed';

export interface ProxyStatus {
  phase?: Phase;
  ip?: string;
  port?: number;
  providerID?: string;
  /**
   * Where the instance is, or where one is being made: written before each create, so that whatever becomes of the
   * answer, it is known where to look. Only with providers that have zones.
   */
  zone?: string;
  /** Counts the instances made for this Proxy; what a probe learned of one says nothing about the next. */
  incarnation?: number;
  observedGeneration?: number;
  latencyMillis?: number;
  /** The last probe that changed the status (RFC 3339); how recent probes are is in the metrics. */
  lastHealthCheckTime?: string;
  conditions?: Condition[];
}

export interface ObjectMeta {
  name: string;
  namespace: string;
  uid: string;
  generation: number;
  resourceVersion: string;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  finalizers?: string[];
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

/** The custom resource as the API server returns it. */
export interface Proxy {
  apiVersion: string;
  kind: 'Proxy';
  metadata: ObjectMeta;
  spec: ProxySpec;
  status?: ProxyStatus;
}

/** Names one Proxy for ever: a recreated CR has another UID and is another proxy. */
export interface ProxyRef {
  namespace: string;
  name: string;
  uid: string;
}

export const refOf = ({ metadata: { namespace, name, uid } }: Proxy): ProxyRef => ({ namespace, name, uid });

export const isExternal = (spec: ProxySpec): spec is ExternalSpec => spec.mode === 'External';

export const portOf = (spec: ProxySpec): number =>
  (isExternal(spec) ? spec.endpoint.port : undefined) ?? spec.port ?? DEFAULT_SQUID_PORT;

export const healthOf = (spec: ProxySpec): HealthSpec => ({ ...HEALTH_DEFAULTS, ...spec.health });

/**
 * What exactly a probe looks at: one incarnation at one address. A verdict about another subject is about a machine
 * that is no longer there. Undefined while there is nothing to probe.
 */
export function probeSubject(status: ProxyStatus | undefined): string | undefined {
  if (!status?.ip || !status.port) return undefined;
  return `${status.incarnation ?? 0}@${status.ip}:${status.port}`;
}
