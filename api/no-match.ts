import type { Match } from './fleet.ts';
import type { Refusal } from './leases/store.ts';
import { Problem } from './problem.ts';

/**
 * The 409 of a lease request: how many proxies match, and what is the matter with each. `considered` is the sum of the other
 * counts, and each proxy is in one of them: unhealthy, else in cooldown, else at capacity (also when its limit is 0).
 */
export function noMatch({ candidates, unhealthy, withdrawn, nextProbeSeconds }: Match, refusal: Refusal): Problem {
  const { atCapacity, inCooldown } = refusal;
  const considered = candidates.length + unhealthy;
  const waitSeconds = refusal.waitMillis === undefined ? nextProbeSeconds : Math.ceil(refusal.waitMillis / 1000);
  return new Problem(409, 'no_match', explain(considered, withdrawn, waitSeconds), {
    details: { considered, atCapacity, inCooldown, unhealthy },
    headers: waitSeconds === undefined ? {} : { 'Retry-After': String(Math.max(1, waitSeconds)) },
  });
}

function explain(considered: number, withdrawn: number, waitSeconds: number | undefined): string {
  const besides = withdrawn > 0 ? ` (${withdrawn} more cordoned or being deleted)` : '';
  if (considered === 0) return `no proxy matches the selector${besides}; GET /v1/proxies lists what there is`;
  const advice = waitSeconds === undefined ? 'waiting will not help' : 'see Retry-After';
  return `${considered} matching${besides}, none free and healthy right now; ${advice}`;
}
