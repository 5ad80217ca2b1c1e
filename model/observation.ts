import type { Statement } from './condition.ts';
import type { Instance, ProviderErrorClass } from './instance.ts';
import type { Phase, Placement, ProxyStatus } from './proxy.ts';

/** How long a Proxy's workflow waits for what, in milliseconds. Configurable, so that tests can shrink them. */
export interface Timing {
  /** Between two looks at an instance on its way up. */
  provisioningPoll: number;
  /** Between two looks at an instance on its way out. */
  deletionPoll: number;
  /** An instance that takes longer to run is deleted and made again. */
  provisioningTimeout: number;
  quotaRetry: number;
  backoffInitial: number;
  backoffMax: number;
  /** The safety net under nudges and sweeps: a pass at least this often. */
  resync: number;
}

/** What one pass of a workflow sees of its Proxy. Holds hashes of secrets, never their content. */
export interface Observation {
  /** Undefined when the CR is gone, or another one has taken its name. */
  proxy?: ObservedProxy;
  timing: Timing;
}

interface ObservedCommon {
  generation: number;
  deleting: boolean;
  /** Whether our finalizer is on it. */
  finalizer: boolean;
  port: number;
  status: ProxyStatus;
}

export interface ObservedExternal extends ObservedCommon {
  mode: 'External';
  host: string;
}

export interface ObservedManaged extends ObservedCommon {
  mode: 'Managed';
  instanceName: string;
  /** A person asked to leave the instance behind when the Proxy is deleted, naming it. */
  abandon: boolean;
  placement: Placement;
  provider: ObservedProvider;
  /** The hash annotation: what the current instance was made from. */
  recordedHash?: string;
  /** The hash of what the spec asks for now, or why its cloud-init can't be resolved. */
  desired: { hash: string } | { cloudInitError: string };
}

export type ObservedProxy = ObservedManaged | ObservedExternal;

export type ObservedProvider = ConfiguredProvider | { name: string; configured: false; known: string[] };

interface ConfiguredProvider {
  name: string;
  configured: true;
  taskQueue: string;
  /** Its instances are in zones, one of which may be what a placement leaves out. */
  zonal?: { defaultZone?: string };
  /** As of the last sweep. */
  unavailable?: boolean;
}

/** A provider call that did not succeed. */
export interface Failure {
  class: Exclude<ProviderErrorClass, 'NotFound'>;
  message: string;
  retryAfterMillis?: number;
  /** See `ProviderError`. */
  zoneExhausted?: boolean;
  /** How many attempts there were: the answers of those before the last one are not known. */
  attempt: number;
}

/** What a look at the instance said; undefined where none was taken. */
export type Look = { found: Instance } | { absent: true } | { failed: Failure };

/** What a pass has to say in the CR. Members left out stay as they are; null clears. */
export interface Report {
  generation: number;
  provisioned?: Statement;
  healthy?: Statement;
  hash?: string;
  providerID?: string | null;
  zone?: string | null;
  ip?: string | null;
  port?: number | null;
  incarnation?: number;
  latencyMillis?: number | null;
  lastHealthCheckTime?: string;
}

/** What the CR says after a report. */
export interface Published {
  phase: Phase;
  /** See `probeSubject`. */
  subject?: string;
}
