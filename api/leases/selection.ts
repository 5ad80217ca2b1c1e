import type { ActiveLeases } from './active-leases.ts';
import type { Cooldowns } from './cooldowns.ts';
import type { Candidate, Refusal } from './store.ts';

/** What selection goes by, at one moment. */
export interface Occupancy {
  readonly active: ActiveLeases;
  readonly cooldowns: Cooldowns;
  readonly now: number;
}

export type Selection = { readonly chosen: Candidate } | ({ readonly chosen: undefined } & Refusal);

/** Among the candidates with room and not in cooldown: the fewest active leases, then the first in the list. */
export function selectCandidate(
  candidates: readonly Candidate[],
  target: string | undefined,
  { active, cooldowns, now }: Occupancy,
): Selection {
  let chosen: Candidate | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  let atCapacity = 0;
  let inCooldown = 0;
  for (const candidate of candidates) {
    if (cooldowns.until(candidate.uid, target, now) !== undefined) {
      inCooldown++;
      continue;
    }
    const count = active.count(candidate.uid, now);
    if (count >= candidate.maxConcurrent) {
      atCapacity++;
    } else if (count < fewest) {
      chosen = candidate;
      fewest = count;
      if (count === 0) break; // nobody further down can have fewer
    }
  }
  if (chosen) return { chosen };
  return { chosen, atCapacity, inCooldown, waitMillis: shortestWait(candidates, target, { active, cooldowns, now }) };
}

/** A candidate is free when both its cooldown is over and it has room. */
function shortestWait(
  candidates: readonly Candidate[],
  target: string | undefined,
  { active, cooldowns, now }: Occupancy,
): number | undefined {
  let earliest = Number.POSITIVE_INFINITY;
  for (const { uid, maxConcurrent } of candidates) {
    const hasRoomAt = active.freeAt(uid, maxConcurrent, now);
    if (hasRoomAt === undefined) continue;
    earliest = Math.min(earliest, Math.max(hasRoomAt, cooldowns.until(uid, target, now) ?? now));
  }
  return Number.isFinite(earliest) ? earliest - now : undefined;
}
