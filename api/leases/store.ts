import type { Lease, ReportResult } from '../../model/lease.ts';

/** A proxy that may be leased right now as far as its own state goes; the store adds what it knows of leases and cooldowns. */
export interface Candidate {
  readonly uid: string;
  /** `spec.lease.maxConcurrent`. When lowered below what is out already, those leases stay and no new ones are granted. */
  readonly maxConcurrent: number;
}

export interface GrantRequest {
  /**
   * In order of preference: the store takes the one with the fewest active leases and, among equals, the first in this
   * list. So it needs to know nothing of latency or names, and one pass in one step does it in any backend.
   */
  readonly candidates: readonly Candidate[];
  readonly ttlMillis: number;
  readonly target: string | undefined;
  readonly owner: string | undefined;
}

export interface Granted {
  readonly lease: Lease;
  /** Active leases on its proxy, this one included. */
  readonly activeLeases: number;
}

/** Why none of the candidates could be leased; each is counted once, so the two counts add up to all of them. */
export interface Refusal {
  /** Not in cooldown, but all of `maxConcurrent` is taken. */
  readonly atCapacity: number;
  /** In cooldown for the target or for all targets, whatever its capacity. */
  readonly inCooldown: number;
  /** In how long the first of them is free, if nobody takes it before; undefined when waiting helps none. */
  readonly waitMillis: number | undefined;
}

export type GrantOutcome = ({ readonly granted: true } & Granted) | ({ readonly granted: false } & Refusal);

/**
 * Leases and cooldowns. Knows nothing of HTTP or Kubernetes; `test/api/leases/conformance.ts` is this contract as tests,
 * for every backend. Each call is one atomic step and is answered only when its effect will survive a crash of this process.
 *
 * Correctness never depends on `trim`: every call looks at the clock.
 *
 * @throws LeaseStoreError from every call when the backend can't do it; nothing has changed then.
 */
export interface LeaseStore {
  /** Selects one of the candidates and leases it. */
  grant(request: GrantRequest): Promise<GrantOutcome>;
  /**
   * The lease now ends `ttlMillis` from now, earlier or later than before. Undefined when it is not active (any more). Asks
   * neither capacity nor cooldown: who holds a proxy keeps it.
   */
  renew(id: string, ttlMillis: number): Promise<Granted | undefined>;
  /** Ends the lease now. Nothing happens when it is not active. */
  release(id: string): Promise<void>;
  /**
   * Puts {proxy, target} in cooldown if the result says so. The target falls back from the report's to the lease's, and to
   * all targets when neither has one. False when the id names no lease, or one that ended longer than a cooldown ago.
   */
  report(id: string, result: ReportResult, target: string | undefined): Promise<boolean>;
  /** Active leases on each of these proxies, in the order asked. */
  countActive(proxyUids: readonly string[]): Promise<number[]>;
  /** Removes what can't matter any more. Returns how many leases and cooldowns that was. */
  trim(): Promise<number>;
  /** Writes what is pending and lets go of the backend; later calls are refused. */
  close(): Promise<void>;
}

/** The backend failed; the message says how, and holds no lease id. */
export class LeaseStoreError extends Error {
  override readonly name = 'LeaseStoreError';
}
