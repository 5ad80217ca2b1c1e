import type { Placement } from './proxy.ts';

/**
 * - `Provisioning`: it exists and is on its way up, or has no address yet.
 * - `Running`: it has its address.
 * - `Stopped`: it exists and will not come back by itself; also any state that we do not know.
 */
export type InstanceState = 'Provisioning' | 'Running' | 'Stopped';

/** What a provider knows of one instance. */
export interface Instance {
  /** The same for every instance of one Proxy, see `instanceName`. */
  name: string;
  /** Self-contained: with it alone the instance is found again, whatever the spec says by now. */
  providerID: string;
  /** UID of the Proxy it was made for. */
  uid: string;
  state: InstanceState;
  /** Why it is in this state, if the provider says. */
  reason?: string;
  ip?: string;
  /** RFC 3339. */
  createdAt: string;
  /** Hash of what it was made from, see `specHash`. */
  specHash: string;
}

/** Enough to find an instance: by `providerID` where one is known, else by name within the placement. */
export interface InstanceRef {
  name: string;
  uid: string;
  providerID?: string;
  placement?: Placement;
  /**
   * What the caller wants it to be made from; left out where it wants it gone. Where creates are accepted first and fail
   * later, a `get` answers with the failure of a create from this very hash, for a while, instead of `NotFound`.
   */
  specHash?: string;
}

/** Everything an instance is made from. `cloudInit` is the resolved text and may be secret. */
export interface InstanceRequest {
  name: string;
  uid: string;
  /** The Proxy's namespace and name, for labels that people read. */
  namespace: string;
  proxyName: string;
  placement: Placement;
  port: number;
  cloudInit?: string;
  specHash: string;
  /** An earlier create may have made it, perhaps from another placement: it is looked for before one is made. */
  mayExist?: boolean;
}

export interface InstanceList {
  instances: Instance[];
  /** Zones, pages or hosts that did not answer. Not empty: what is missing is unknown, not absent. */
  unreachable: string[];
}

/** The class alone decides what happens next; see the contract's table of errors. */
export const PROVIDER_ERROR_CLASSES = ['NotFound', 'QuotaExceeded', 'Permanent', 'RateLimited', 'Transient'] as const;
export type ProviderErrorClass = (typeof PROVIDER_ERROR_CLASSES)[number];

/** A provider's answer that is not an instance. The message is shown to people, so it never holds secrets. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
  readonly class: ProviderErrorClass;
  /** With `RateLimited`: how long the provider asked us to wait. */
  readonly retryAfterMillis: number | undefined;
  /** With `QuotaExceeded`: it is this zone that has run out of machines; another one may have some. */
  readonly zoneExhausted: boolean;

  constructor(
    errorClass: ProviderErrorClass,
    message: string,
    options: ErrorOptions & { retryAfterMillis?: number; zoneExhausted?: boolean } = {},
  ) {
    super(message, options);
    this.class = errorClass;
    this.retryAfterMillis = options.retryAfterMillis;
    this.zoneExhausted = options.zoneExhausted ?? false;
  }
}

/** The label under which each instance carries the UID of its Proxy. */
export const UID_LABEL = 'proxy-operator-uid';
