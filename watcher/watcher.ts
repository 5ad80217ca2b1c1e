import { type Client, WorkflowIdConflictPolicy, WorkflowNotFoundError } from '@temporalio/client';
import { ABANDON_ANNOTATION, CLOUD_INIT_LABEL, FINALIZER, isExternal, type Proxy, refOf } from '../model/proxy.ts';
import {
  CONFIGURE,
  NUDGE,
  PROBES_WORKFLOW,
  PROXY_WORKFLOW,
  probesTaskQueue,
  proxyWorkflowID,
  proxyWorkflowPrefix,
} from '../model/workflow-names.ts';
import type { ListWatch } from './list-watch.ts';
import { createNudges } from './nudges.ts';
import type { CacheOptions, ProxyCache } from './proxy-cache.ts';
import { startSecretWatch } from './secrets.ts';
import { settled } from './settled.ts';

export interface WatcherOptions extends CacheOptions {
  cache: ProxyCache;
  client: Client;
  taskQueue: string;
  probeShards: number;
  /** Between two comparisons of the Proxies with the workflows that run. */
  resyncMillis: number;
}

export interface Watcher {
  readonly secrets: ListWatch;
  /** Nudges not delivered yet. */
  readonly pending: number;
  stop(): Promise<void>;
}

const CALL_MILLIS = 30_000;

/**
 * Forwards what happens to Proxies, and to the Secrets they are made from, as nudges to their workflows. Thin: it decides
 * nothing, and everything it forgets is found again by the next resync.
 */
export function startWatcher(options: WatcherOptions): Watcher {
  const { cache, client, taskQueue, probeShards, resyncMillis, warn } = options;
  const nudges = createNudges({ client, taskQueue, warn });
  /** What was last forwarded of each Proxy: its own status writes are no news to a workflow. */
  const forwarded = new Map<string, string>();

  function onProxy(proxy: Proxy, change: 'changed' | 'removed'): void {
    const { uid } = proxy.metadata;
    if (change === 'removed') {
      forwarded.delete(uid);
      nudges.nudge(proxy, { start: false });
      return;
    }
    const news = newsOf(proxy);
    if (forwarded.get(uid) === news) return;
    const first = !forwarded.has(uid);
    forwarded.set(uid, news);
    // After a restart, a workflow that has acted on all there is need not be woken; resync makes sure that it runs.
    if (first && isSettled(proxy) && !usesSecret(proxy)) return;
    nudges.nudge(proxy, { start: needsWorkflow(proxy) });
  }

  /** What is missing is started: a workflow that was terminated by hand, or a Temporal that lost its database. */
  async function resync(): Promise<void> {
    if (!cache.synced) return;
    await client.withDeadline(Date.now() + CALL_MILLIS, async () => {
      await ensureProbes();
      const running = new Set<string>();
      const query = `WorkflowType = '${PROXY_WORKFLOW}' AND ExecutionStatus = 'Running'`;
      for await (const { workflowId } of client.workflow.list({ query })) running.add(workflowId);
      for (const proxy of cache.all()) {
        const id = proxyWorkflowID(refOf(proxy));
        if (needsWorkflow(proxy) && !running.has(id)) nudges.nudge(proxy, { start: true });
        running.delete(id);
      }
      // What is left runs for a Proxy that went while nobody watched: it ends when it looks.
      const { namespace = '' } = options;
      for (const id of running) {
        if (id.startsWith(proxyWorkflowPrefix(namespace)))
          await client.workflow.getHandle(id).signal(NUDGE).catch(ignoreGone);
      }
    });
  }

  let probesConfigured = false;
  async function ensureProbes(): Promise<void> {
    const config = { shards: probeShards, taskQueue: probesTaskQueue(taskQueue) };
    const handle = await client.workflow.start(PROBES_WORKFLOW, {
      workflowId: PROBES_WORKFLOW,
      taskQueue,
      args: [config],
      workflowIdConflictPolicy: WorkflowIdConflictPolicy.USE_EXISTING,
      staticSummary: 'Probes every proxy of the fleet',
    });
    // Once per process: one that runs already may have been started with another number of shards.
    if (!probesConfigured) await handle.signal(CONFIGURE, config);
    probesConfigured = true;
  }

  const secrets = startSecretWatch({
    ...options,
    label: CLOUD_INIT_LABEL,
    onChange(namespace, name) {
      for (const proxy of cache.all()) {
        if (proxy.metadata.namespace === namespace && refersTo(proxy, name))
          nudges.nudge(proxy, { start: needsWorkflow(proxy) });
      }
    },
  });

  const unsubscribe = cache.subscribe(onProxy);
  for (const proxy of cache.all()) onProxy(proxy, 'changed');

  let stopped = false;
  let timer: NodeJS.Timeout;
  let resyncing: Promise<void> = Promise.resolve();
  async function resyncForEver(): Promise<void> {
    let pause = resyncMillis;
    try {
      await resync();
    } catch (error) {
      pause = Math.min(resyncMillis, 5_000);
      warn(`Resync failed; trying again in ${pause} ms`, error);
    }
    if (!stopped) next(cache.synced ? pause : 200);
  }
  function next(pause: number): void {
    timer = setTimeout(() => {
      resyncing = resyncForEver();
    }, pause);
  }
  next(0);

  return {
    secrets,
    get pending() {
      return nudges.pending;
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      unsubscribe();
      await Promise.all([nudges.stop(), settled([resyncing]), secrets.stop()]);
    },
  };
}

const newsOf = ({ metadata }: Proxy): string =>
  `${metadata.generation} ${metadata.deletionTimestamp ?? ''} ${metadata.annotations?.[ABANDON_ANNOTATION] ?? ''}`;

const isSettled = ({ metadata, status }: Proxy): boolean =>
  !metadata.deletionTimestamp && status?.observedGeneration === metadata.generation;

/** One that is on its way out and no longer holds an instance of ours needs nothing from us. */
const needsWorkflow = ({ metadata }: Proxy): boolean =>
  !metadata.deletionTimestamp || (metadata.finalizers?.includes(FINALIZER) ?? false);

function ignoreGone(error: unknown): void {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

/** A Secret may have been rotated while nobody watched. */
const usesSecret = ({ spec }: Proxy): boolean =>
  !isExternal(spec) && spec.cloudInit !== undefined && 'secretRef' in spec.cloudInit;

const refersTo = ({ spec }: Proxy, secret: string): boolean =>
  !isExternal(spec) &&
  spec.cloudInit !== undefined &&
  'secretRef' in spec.cloudInit &&
  spec.cloudInit.secretRef.name === secret;
