/** A crawler's right to use one proxy until `endsAt`. Never changed in place: a renewal is another value under the same id. */
export interface Lease {
  /** Unguessable and fenced: given out once, it never names anybody else's lease. */
  readonly id: string;
  /** UID of the Proxy. A CR recreated under the same name is another proxy, which this lease has no part in. */
  readonly proxyUid: string;
  /** What the crawler wants to reach, as it calls it. Compared as it is, so crawlers must agree on the spelling. */
  readonly target: string | undefined;
  /** Who asked, for people to read. */
  readonly owner: string | undefined;
  /** Milliseconds since the epoch. */
  readonly grantedAt: number;
  /** Milliseconds since the epoch: the moment of expiry, or of release if that came first. Active while it is ahead. */
  readonly endsAt: number;
}

export const isActive = (lease: Lease, now: number): boolean => lease.endsAt > now;

/** How the target treated the proxy, as the crawler saw it. */
export const REPORT_RESULTS = ['ok', 'rate_limited', 'banned'] as const;
export type ReportResult = (typeof REPORT_RESULTS)[number];

/** Whether a report of this kind keeps the proxy away from the target for a while. */
export const coolsDown = (result: ReportResult): boolean => result !== 'ok';
