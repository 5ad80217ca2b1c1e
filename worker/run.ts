import type { Logger } from 'pino';
import { startProviderHealths } from '../watcher/provider-healths.ts';
import { startProxyCache } from '../watcher/proxy-cache.ts';
import { startCredentialsCache } from '../watcher/secrets.ts';
import { startWatcher } from '../watcher/watcher.ts';
import { connectKubernetes } from './kubernetes-connection.ts';
import { startLeaseService } from './lease-service.ts';
import { createMetrics } from './metrics.ts';
import { readProvidersFile } from './providers.ts';
import { type Role, type Settings, servedQueues } from './settings.ts';
import { startStatusServer } from './status-server.ts';
import { connectTemporal } from './temporal-connection.ts';
import { installTemporalRuntime } from './temporal-runtime.ts';
import { type Seams, startWorkerService } from './worker-service.ts';

export interface Running {
  /** Rejects when a part fails beyond recovery. */
  readonly failed: Promise<never>;
  stop(): Promise<void>;
}

/**
 * Starts everything that the role needs, in the order in which it depends on each other; `stop` goes the other way.
 * When a part can't start, those that did are stopped again.
 *
 * @throws StartError for what a person can mend
 */
export async function run(settings: Settings, logger: Logger, version: string, seams?: Seams): Promise<Running> {
  const plays = (role: Role) => settings.role === 'all' || settings.role === role;
  const warn = (message: string, error: unknown) => logger.warn({ err: error }, message);
  const stack = new AsyncDisposableStack();
  const stopLater = <T extends { stop(): Promise<void> }>(part: T): T => stack.adopt(part, () => part.stop());
  let failed: Promise<never> = new Promise(() => {});
  try {
    const providerConfigs = plays('worker') ? readProvidersFile(settings.providersConfig) : [];
    const metrics = createMetrics();
    const sdkMetrics = plays('worker') ? await installTemporalRuntime(logger) : undefined;
    const status = await startStatusServer(metrics.registry, settings.metricsAddress, sdkMetrics);
    stack.adopt(status, () => status.close());

    const { namespace, watchRelist: relistMillis } = settings;
    const kubeConfig = await connectKubernetes(namespace);
    const watching = { kubeConfig, ...(namespace && { namespace }), relistMillis, warn };
    const temporal =
      plays('watcher') || plays('worker')
        ? await connectTemporal(settings.temporalAddress, plays('worker'))
        : undefined;
    if (temporal) stack.adopt(temporal, () => temporal.close());

    const cache = stopLater(startProxyCache(watching));
    const credentials = stopLater(startCredentialsCache(watching));
    const healths = plays('worker') ? stopLater(startProviderHealths({ kubeConfig, relistMillis, warn })) : undefined;
    metrics.watchProxies(() => cache.all());
    metrics.watchAges('proxies', () => cache);

    const { taskQueue } = settings;
    const trimmedBySchedule = plays('api') && plays('worker') && servedQueues(settings).includes(taskQueue);
    const leases = plays('api')
      ? stopLater(
          await startLeaseService({ settings, cache, credentials, metrics, logger, version, trimmedBySchedule }),
        )
      : undefined;
    if (temporal && healths) {
      const service = await startWorkerService({
        settings,
        temporal,
        providerConfigs,
        kubeConfig,
        cache,
        credentials,
        isUnavailable: healths.isUnavailable,
        metrics,
        logger,
        ...(leases && trimmedBySchedule && { trimLeases: leases.trim }),
        ...(seams && { seams }),
      });
      stopLater(service);
      failed = service.failed;
    }
    if (temporal && plays('watcher')) {
      const { client } = temporal;
      const { probeShards, watchResync: resyncMillis } = settings;
      const watcher = stopLater(startWatcher({ ...watching, cache, client, taskQueue, probeShards, resyncMillis }));
      metrics.watchAges('cloud-init secrets', () => watcher.secrets);
      metrics.watchNudges(() => watcher.pending);
    }
    status.setReady(true);
    return {
      failed,
      stop() {
        status.setReady(false);
        return stack.disposeAsync();
      },
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}
