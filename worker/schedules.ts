import {
  type Client,
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  type ScheduleOptions,
  ScheduleOverlapPolicy,
} from '@temporalio/client';
import type { Logger } from 'pino';

/** A workflow that is started again and again. */
export interface WantedSchedule {
  id: string;
  workflowType: string;
  args: unknown[];
  everyMillis: number;
  /** From the moment it is made to its first run. */
  firstAfterMillis: number;
}

export interface SchedulesOptions {
  client: Client;
  taskQueue: string;
  wanted: WantedSchedule[];
  /** Whether a schedule is ours to remove when nobody wants it any more. */
  ours(id: string): boolean;
  logger: Logger;
}

type ScheduleUpdate = Omit<ScheduleOptions, 'scheduleId' | 'state'>;

const CALL_MILLIS = 10_000;
/** A run that hangs would make the schedule skip all later ones in silence. */
const EXECUTION_TIMEOUT = '10m';

/**
 * Makes the schedules what the configuration wants, and touches nothing else: one that a person has paused stays paused,
 * and one that already fits is not written.
 */
export async function ensureSchedules({ client, taskQueue, wanted, ours, logger }: SchedulesOptions): Promise<void> {
  const inTime = <T>(call: () => Promise<T>) => client.withDeadline(Date.now() + CALL_MILLIS, call);
  for (const schedule of wanted) await inTime(() => ensure(client, taskQueue, schedule, logger));
  const ids = new Set(wanted.map(({ id }) => id));
  await inTime(async () => {
    for await (const { scheduleId } of client.schedule.list()) {
      if (ids.has(scheduleId) || !ours(scheduleId)) continue;
      logger.warn({ schedule: scheduleId }, 'removing a schedule whose provider left the configuration');
      await client.schedule.getHandle(scheduleId).delete().catch(ignoreMissing);
    }
  });
}

async function ensure(client: Client, taskQueue: string, schedule: WantedSchedule, logger: Logger): Promise<void> {
  const { id, everyMillis } = schedule;
  try {
    await client.schedule.create({ scheduleId: id, ...optionsOf(schedule, taskQueue) });
    return;
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
  }
  const handle = client.schedule.getHandle(id);
  const { spec, action, policies } = await handle.describe();
  const fits =
    spec.intervals?.length === 1 &&
    spec.intervals[0]?.every === everyMillis &&
    action.type === 'startWorkflow' &&
    action.workflowType === schedule.workflowType &&
    action.taskQueue === taskQueue &&
    JSON.stringify(action.args) === JSON.stringify(schedule.args) &&
    policies.overlap === ScheduleOverlapPolicy.SKIP;
  if (fits) return;
  logger.info({ schedule: id }, 'bringing a schedule in step with the configuration');
  await handle.update(({ state }) => ({ ...optionsOf(schedule, taskQueue), state }));
}

function optionsOf(schedule: WantedSchedule, taskQueue: string): ScheduleUpdate {
  const { id, workflowType, args, everyMillis, firstAfterMillis } = schedule;
  return {
    // Intervals count from the epoch; the offset makes the first run come when it is wanted from now.
    spec: { intervals: [{ every: everyMillis, offset: Math.round(Date.now() + firstAfterMillis) % everyMillis }] },
    action: {
      type: 'startWorkflow',
      workflowType,
      workflowId: id,
      args,
      taskQueue,
      workflowExecutionTimeout: EXECUTION_TIMEOUT,
    },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: '1m' },
  };
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof ScheduleNotFoundError)) throw error;
}
