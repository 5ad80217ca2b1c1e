import { conditionOf, metaTime, type Statement, withCondition } from '../../model/condition.ts';
import type { ProviderHealthStatus } from '../../model/provider-health.ts';

/** What one sweep of a provider came to. */
export type SweepOutcome =
  | { listed: true; instances: number; unreachable: string[]; orphans?: OrphanOutcome }
  | { listed: false; errorClass: string; message: string };

/** What became of the orphans; absent where the sweep did not look for any. */
export interface OrphanOutcome {
  /** How many suspects there were; undefined where not all was seen, so that nobody can say. */
  found?: number;
  deleted: number;
  /** The words of the provider on the last deletion that it refused. */
  refused?: string;
  /** Why those that were not deleted were spared. */
  spared?: { reason: string; message: string };
}

/** The status after a sweep. `since` of conditions moves only when their status does. */
export function healthAfter(
  before: ProviderHealthStatus | undefined,
  outcome: SweepOutcome,
  now: number,
): ProviderHealthStatus {
  const time = metaTime(now);
  const state = (
    conditions: ProviderHealthStatus['conditions'],
    type: 'Available' | 'OrphansCollected',
    statement: Statement,
  ) => withCondition(conditions, type, statement, 1, now);
  if (!outcome.listed) {
    const { errorClass: reason, message } = outcome;
    return {
      ...before,
      lastCheckTime: time,
      consecutiveFailures: (before?.consecutiveFailures ?? 0) + 1,
      conditions: state(before?.conditions, 'Available', { status: 'False', reason, message }),
    };
  }
  const { instances, unreachable, orphans } = outcome;
  const partial = unreachable.length > 0;
  const available: Statement = {
    status: 'True',
    reason: partial ? 'Partial' : 'Available',
    message: partial ? `Not reached: ${unreachable.join(', ')}` : `${instances} instances listed`,
  };
  let conditions = state(before?.conditions, 'Available', available);
  if (orphans) conditions = state(conditions, 'OrphansCollected', collected(orphans));
  return {
    ...before,
    instances: instances - (orphans?.deleted ?? 0),
    ...(orphans?.found !== undefined && { orphans: orphans.found - orphans.deleted }),
    lastCheckTime: time,
    lastSuccessTime: time,
    consecutiveFailures: 0,
    conditions,
  };
}

/** Whether this sweep is the first to reach the provider again. */
export const hasRecovered = (before: ProviderHealthStatus | undefined, outcome: SweepOutcome): boolean =>
  outcome.listed && conditionOf(before?.conditions, 'Available')?.status === 'False';

function collected({ found = 0, deleted, spared, refused }: OrphanOutcome): Statement {
  if (spared) return { status: 'False', ...spared };
  if (refused)
    return { status: 'False', reason: 'DeleteFailed', message: `An orphan could not be deleted: ${refused}` };
  if (found === deleted) {
    const message = deleted > 0 ? `${deleted} orphans deleted` : 'No orphans';
    return { status: 'True', reason: 'NoOrphans', message };
  }
  const message = `${found - deleted} suspects turned out to be none at a second look`;
  return { status: 'True', reason: 'SecondLook', message };
}
