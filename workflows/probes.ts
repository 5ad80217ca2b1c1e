import {
  ActivityCancellationType,
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  setHandler,
} from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import type { Streaks } from '../activities/probe-shard.ts';
import { CONFIGURE } from '../model/workflow-names.ts';

export interface ProbesConfig {
  /** How many activities share the fleet. */
  shards: number;
  taskQueue: string;
}

export const configureSignal = defineSignal<[ProbesConfig]>(CONFIGURE);

/** A shard hands its streaks back at least this often, so that this workflow's history stays short. */
const TERM_MILLIS = 60 * 60_000;

/**
 * Keeps the probe shards running, for ever: one long activity per shard rather than one per probe, which would write six
 * history events each. `streaks` are those of the last term, by shard.
 */
export async function probes(initial: ProbesConfig, streaks: Streaks[] = []): Promise<void> {
  let config = initial;
  let reconfigured = false;
  setHandler(configureSignal, (wanted) => {
    if (wanted.shards === config.shards && wanted.taskQueue === config.taskQueue) return;
    config = wanted;
    reconfigured = true;
  });

  const until = Date.now() + TERM_MILLIS;
  const { probeShard } = proxyActivities<Pick<Activities, 'probeShard'>>({
    taskQueue: initial.taskQueue,
    startToCloseTimeout: TERM_MILLIS + 5 * 60_000,
    // Short, since a shard whose worker died leaves its proxies unwatched until this has passed.
    heartbeatTimeout: '10s',
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { initialInterval: '1s', maximumInterval: '10s' },
  });
  setCurrentDetails(
    `${initial.shards} shards probe the fleet; their streaks ride in the heartbeats of the activities below.`,
  );

  const term = new CancellationScope({ cancellable: true });
  const ended = term.run(() =>
    Promise.all(
      Array.from({ length: initial.shards }, (_, index) =>
        probeShard.executeWithOptions({ summary: `Probe shard ${index + 1} of ${initial.shards}` }, [
          { index, count: initial.shards, until, streaks: streaks[index] ?? {} },
        ]),
      ),
    ),
  );
  let results: Streaks[] | undefined;
  const settled = ended.then((value) => {
    results = value;
  });
  await Promise.race([settled, condition(() => reconfigured)]);
  if (!results) {
    term.cancel();
    await settled.catch((error) => {
      if (!isCancellation(error)) throw error;
    });
  }
  // Streaks belong to a shard; another number of shards deals the proxies anew, and the status still has the verdicts.
  await continueAsNew<typeof probes>(config, config.shards === initial.shards ? (results ?? []) : []);
}
