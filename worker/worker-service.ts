import type { KubeConfig } from '@kubernetes/client-node';
import type { Logger } from 'pino';
import { createKubernetesActivities, createLeaseActivities, createProviderActivities } from '../activities/index.ts';
import { createKubernetes, type Kubernetes } from '../activities/kubernetes.ts';
import type { Provider } from '../activities/providers/contract.ts';
import type { ProviderConfig } from '../activities/providers/registry.ts';
import type { Timing } from '../model/observation.ts';
import { leasesTaskQueue, probesTaskQueue } from '../model/workflow-names.ts';
import type { ProxyCache } from '../watcher/proxy-cache.ts';
import type { CredentialsCache } from '../watcher/secrets.ts';
import type { Metrics } from './metrics.ts';
import { probeActivities } from './probes.ts';
import { openProviders } from './providers.ts';
import { type Settings, servedQueues } from './settings.ts';
import { StartError } from './start-error.ts';
import { keepSchedules, sweepDeps } from './sweeps.ts';
import type { Temporal } from './temporal-connection.ts';
import { type QueueWork, startWorkers } from './workers.ts';

/** For calls to Kubernetes and to providers: how many are under way at once, and how long a shutdown waits for them. */
const CALLS = { slots: 100, grace: '10s' } as const;

/** The two places at which this process changes the world; a fault harness can put itself there. */
export interface Seams {
  kubernetes(real: Kubernetes): Kubernetes;
  provider(real: Provider): Provider;
}

export interface WorkerServiceDeps {
  settings: Settings;
  temporal: Temporal;
  providerConfigs: ProviderConfig[];
  kubeConfig: KubeConfig;
  cache: ProxyCache;
  credentials: CredentialsCache;
  /** As of the last sweep of that provider. */
  isUnavailable(provider: string): boolean;
  metrics: Metrics;
  logger: Logger;
  /** Trims the lease store of this process, where it has one. */
  trimLeases?: () => Promise<number>;
  seams?: Seams;
}

/** Workflows, provider calls and probes, on the task queues that this process serves. */
export async function startWorkerService(
  deps: WorkerServiceDeps,
): Promise<{ failed: Promise<never>; stop(): Promise<void> }> {
  const { settings, temporal, providerConfigs, metrics, logger, seams } = deps;
  const { taskQueue } = settings;
  const served = servedQueues(settings);
  const serves = (queue: string) => served.includes(queue);
  const probes = serves(taskQueue) ? probeActivities(deps) : undefined;
  // Last of what can fail for a wrong setting: a provider may start instances again that it finds stopped.
  const providers = await openProviders(providerConfigs, taskQueue, serves, logger, metrics.countProviderCall);
  try {
    const real = createKubernetes(deps.kubeConfig);
    const kubernetes = seams?.kubernetes(real) ?? real;
    const provider = (name: string) => seams?.provider(providers.get(name)) ?? providers.get(name);
    const warn = (message: string, error: unknown) => logger.warn({ err: error }, message);
    const sweeps = sweepDeps(deps, kubernetes);
    const providerActivities = createProviderActivities({ kubernetes, provider, ...sweeps });
    const main = {
      ...createKubernetesActivities({
        kubernetes,
        timing: timingOf(settings),
        route(name) {
          const routed = providers.route(name);
          return routed.configured && deps.isUnavailable(name) ? { ...routed, unavailable: true } : routed;
        },
        now: Date.now,
        warn,
      }),
      ...providerActivities,
    };
    const leases = deps.trimLeases && createLeaseActivities(deps.trimLeases);
    const slots = settings.probeShards;
    const queues: QueueWork[] = [
      ...(serves(taskQueue) ? [{ taskQueue, activities: main, workflows: true, ...CALLS }] : []),
      // A shard never finishes by itself, and the sooner it is cancelled, the sooner its next worker has it.
      ...(probes
        ? [{ taskQueue: probesTaskQueue(taskQueue), activities: probes, workflows: false, slots, grace: 0 }]
        : []),
      ...providers.queues
        .filter((queue) => queue !== taskQueue && serves(queue))
        .map((queue) => ({ taskQueue: queue, activities: providerActivities, workflows: false, ...CALLS })),
      ...(leases ? [{ taskQueue: leasesTaskQueue(taskQueue), activities: leases, workflows: false, ...CALLS }] : []),
    ];
    if (queues.length === 0)
      throw new StartError(`None of the task queues ${served.join(', ')} exists; check --serve-queues`);
    const { cachedWorkflows: maxCachedWorkflows, deploymentName, deploymentBuildId: buildId } = settings;
    const version = buildId ? { deploymentName, buildId } : undefined;
    const workers = await startWorkers(temporal, queues, { maxCachedWorkflows, ...(version && { version }) });
    const schedules = serves(taskQueue) ? keepSchedules(deps, providers.route) : undefined;
    return {
      failed: workers.failed,
      async stop() {
        schedules?.stop();
        await workers.stop();
        await providers.close();
      },
    };
  } catch (error) {
    await providers.close();
    throw error;
  }
}

function timingOf(settings: Settings): Timing {
  const { provisioningPoll, deletionPoll, provisioningTimeout, quotaRetry, backoffInitial, backoffMax, proxyResync } =
    settings;
  return {
    provisioningPoll,
    deletionPoll,
    provisioningTimeout,
    quotaRetry,
    backoffInitial,
    backoffMax,
    resync: proxyResync,
  };
}
