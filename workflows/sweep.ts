import { ActivityCancellationType, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import type { SweepReport, SweepRequest } from '../activities/sweep/index.ts';

/** One look at one provider, started by its schedule. Fails rather than waits: the next one comes soon. */
export async function sweep(request: SweepRequest, taskQueue: string): Promise<SweepReport> {
  const { sweepProvider } = proxyActivities<Pick<Activities, 'sweepProvider'>>({
    taskQueue,
    scheduleToStartTimeout: '1m',
    startToCloseTimeout: '5m',
    heartbeatTimeout: '20s',
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { maximumAttempts: 2 },
  });
  const summary = request.orphans ? `Drift and orphans of ${request.provider}` : `Drift of ${request.provider}`;
  return await sweepProvider.executeWithOptions({ summary }, [request]);
}

/** Removes what can't matter any more from the lease store that this queue's worker holds. */
export async function trimLeases(taskQueue: string): Promise<number> {
  const { trimLeaseStore } = proxyActivities<Pick<Activities, 'trimLeaseStore'>>({
    taskQueue,
    scheduleToStartTimeout: '1m',
    startToCloseTimeout: '1m',
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { maximumAttempts: 2 },
  });
  return await trimLeaseStore.executeWithOptions({ summary: 'Trim leases and cooldowns' }, []);
}
