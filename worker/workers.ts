import { fileURLToPath } from 'node:url';
import type { Duration } from '@temporalio/common';
import { bundleWorkflowCode, Worker, type WorkerOptions } from '@temporalio/worker';
import { StartError } from './start-error.ts';
import type { Temporal } from './temporal-connection.ts';

export interface QueueWork {
  taskQueue: string;
  activities: object;
  /** Whether workflows run here as well. */
  workflows: boolean;
  /** Activities under way at once. */
  slots: number;
  /** How long a shutdown lets activities finish before it cancels them. */
  grace: Duration;
}

export interface Workers {
  /** Rejects when a worker fails beyond recovery. */
  readonly failed: Promise<never>;
  /** Lets running activities finish or give their state back, within the SDK's own bound. */
  stop(): Promise<void>;
}

const WORKFLOWS_PATH = fileURLToPath(new URL('../workflows/index.ts', import.meta.url));

const COMMON = {
  // worker.run() never settles with an activity that hangs, unless it is forced to.
  shutdownForceTime: '25s',
  // A shard's streaks are at most this stale after a crash.
  maxHeartbeatThrottleInterval: '2s',
  defaultHeartbeatThrottleInterval: '2s',
} satisfies Partial<WorkerOptions>;

/** The version of a Worker Deployment that workers run as. */
export interface DeploymentVersion {
  deploymentName: string;
  buildId: string;
}

export interface WorkersOptions {
  maxCachedWorkflows: number;
  /** Undefined: unversioned. */
  version?: DeploymentVersion;
  /** Where the workflows are; by default those of this project. */
  workflowsPath?: string;
}

/** One worker per task queue, all running when this resolves. */
export async function startWorkers(
  { native, namespace }: Temporal,
  queues: QueueWork[],
  { maxCachedWorkflows, version, workflowsPath = WORKFLOWS_PATH }: WorkersOptions,
): Promise<Workers> {
  if (!native) throw new StartError('This process was connected to Temporal without the means to run workers');
  const workflowBundle = queues.some(({ workflows }) => workflows) ? await bundle(workflowsPath) : undefined;
  const workers = await Promise.all(
    queues.map(({ taskQueue, activities, workflows, slots, grace }) =>
      Worker.create({
        ...COMMON,
        connection: native,
        namespace,
        taskQueue,
        activities,
        maxConcurrentActivityTaskExecutions: slots,
        shutdownGraceTime: grace,
        ...(version && {
          // A proxy's workflow outlives every version: it moves on with each, and its code must replay.
          workerDeploymentOptions: {
            useWorkerVersioning: true,
            version,
            defaultVersioningBehavior: 'AUTO_UPGRADE' as const,
          },
        }),
        ...(workflows && workflowBundle && { workflowBundle, maxCachedWorkflows }),
      }),
    ),
  );
  const runs = workers.map((worker) => worker.run());
  const { promise: failed, reject } = Promise.withResolvers<never>();
  for (const run of runs) run.catch(reject);
  failed.catch(() => {});
  return {
    failed,
    async stop() {
      for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
      await Promise.allSettled(runs);
    },
  };
}

function bundle(workflowsPath: string) {
  return bundleWorkflowCode({
    workflowsPath,
    logger: { log() {}, trace() {}, debug() {}, info() {}, warn: console.warn, error: console.error },
  });
}
