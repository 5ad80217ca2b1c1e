import { WorkflowNotFoundError } from '@temporalio/client';
import type { Kubernetes } from '../activities/kubernetes.ts';
import type { SweepDeps } from '../activities/sweep/sweep.ts';
import type { ObservedProvider } from '../model/observation.ts';
import {
  leasesTaskQueue,
  NUDGE,
  proxyWorkflowID,
  SWEEP_WORKFLOW,
  TRIM_LEASES_WORKFLOW,
} from '../model/workflow-names.ts';
import { ensureSchedules, type WantedSchedule } from './schedules.ts';
import type { WorkerServiceDeps } from './worker-service.ts';

const NUDGE_CALL_MILLIS = 10_000;
const TRIM_MILLIS = 60_000;
const RETRY_MILLIS = 30_000;
/** Somebody may have removed one, or a worker with an older configuration may have come and gone. */
const KEEP_MILLIS = 10 * 60_000;

/** What sweeps need, as this process is set up. */
export function sweepDeps(
  { settings, temporal, metrics, logger }: WorkerServiceDeps,
  kubernetes: Kubernetes,
): SweepDeps {
  const { namespace, gcMinAge, gcMaxOrphans, gcDryRun, gcAllowNamespaced } = settings;
  return {
    settings: {
      minAgeMillis: gcMinAge,
      maxOrphans: gcMaxOrphans,
      dryRun: gcDryRun,
      blindToNamespaces: namespace !== '' && !gcAllowNamespaced,
    },
    listProxies: () => kubernetes.listProxies(namespace || undefined),
    readHealth: kubernetes.readProviderHealth,
    writeHealth: kubernetes.writeProviderHealth,
    async nudge(ref) {
      const handle = temporal.client.workflow.getHandle(proxyWorkflowID(ref));
      try {
        await temporal.client.withDeadline(Date.now() + NUDGE_CALL_MILLIS, () => handle.signal(NUDGE));
      } catch (error) {
        // The watcher starts what is missing, and a new workflow begins with a look.
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      }
    },
    now: Date.now,
    countOrphans: (provider, { found, deleted }) =>
      metrics.countOrphans(provider, deleted, found === undefined ? undefined : found - deleted),
    log: logger,
  };
}

/** Brings the schedules in step with the configuration, and keeps them there, in the background. */
export function keepSchedules(
  deps: WorkerServiceDeps,
  route: (provider: string) => ObservedProvider,
): { stop(): void } {
  const { settings, temporal, logger, providerConfigs, trimLeases } = deps;
  const { taskQueue, sweepInterval, driftInterval } = settings;
  const wanted = providerConfigs.flatMap(({ name }): WantedSchedule[] => {
    const routed = route(name);
    const queue = routed.configured ? routed.taskQueue : taskQueue;
    const sweep = (id: string, everyMillis: number, orphans: boolean): WantedSchedule => ({
      id: `${id}/${name}`,
      workflowType: SWEEP_WORKFLOW,
      args: [{ provider: name, orphans }, queue],
      everyMillis,
      // Out of step, or each full sweep would come together with one for drift alone.
      firstAfterMillis: orphans ? everyMillis : everyMillis / 2,
    });
    return [sweep('sweep', sweepInterval, true), sweep('drift', driftInterval, false)];
  });
  if (trimLeases) {
    const args = [leasesTaskQueue(taskQueue)];
    wanted.push({
      id: 'trim-leases',
      workflowType: TRIM_LEASES_WORKFLOW,
      args,
      everyMillis: TRIM_MILLIS,
      firstAfterMillis: TRIM_MILLIS,
    });
  }
  const ours = (id: string) => id.startsWith('sweep/') || id.startsWith('drift/') || id === 'trim-leases';
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  const attempt = async () => {
    let pause = KEEP_MILLIS;
    try {
      await ensureSchedules({ client: temporal.client, taskQueue, wanted, ours, logger });
    } catch (error) {
      pause = RETRY_MILLIS;
      logger.warn({ err: error }, `Schedules could not be brought in step; trying again in ${pause / 1000} s`);
    }
    if (!stopped) timer = setTimeout(() => void attempt(), pause);
  };
  void attempt();
  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
