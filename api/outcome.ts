import type { MiddlewareHandler } from 'hono';

/** How a call under `/v1/leases` ended; the values of the metric's label. */
export const LEASE_OUTCOMES = [
  'granted',
  'no_match',
  'renewed',
  'gone',
  'released',
  'reported_ok',
  'reported_rate_limited',
  'reported_banned',
  'unknown_lease',
  'invalid',
  'unauthorized',
  'failed',
] as const;
export type LeaseOutcome = (typeof LEASE_OUTCOMES)[number];

/** What handlers tell the middleware around them. */
export interface LeaseApiEnv {
  Variables: {
    leaseID: string | undefined;
    outcome: LeaseOutcome | undefined;
  };
}

/** Calls back once per request with what its handler said, or, when none got so far, with what its status tells. */
export function leaseOutcome(onLease: (outcome: LeaseOutcome) => void): MiddlewareHandler<LeaseApiEnv> {
  return async function leaseOutcome(c, next) {
    await next();
    onLease(c.get('outcome') ?? outcomeOfStatus(c.res.status));
  };
}

function outcomeOfStatus(status: number): LeaseOutcome {
  if (status >= 500) return 'failed';
  return status === 401 ? 'unauthorized' : 'invalid';
}
