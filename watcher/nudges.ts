import {
  type Client,
  WorkflowExecutionAlreadyStartedError,
  WorkflowIdReusePolicy,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import pLimit from 'p-limit';
import { isExternal, type Proxy, refOf } from '../model/proxy.ts';
import { NUDGE, PROXY_WORKFLOW, proxyWorkflowID } from '../model/workflow-names.ts';
import { settled } from './settled.ts';

export interface NudgesOptions {
  client: Client;
  taskQueue: string;
  warn(message: string, error: unknown): void;
}

export interface Nudges {
  /** Wakes the Proxy's workflow. `start`: also where none runs. */
  nudge(proxy: Proxy, options: { start: boolean }): void;
  /** Proxies whose nudge has not been delivered yet. */
  readonly pending: number;
  /** Delivers no more; resolves when no call is under way, or soon after. */
  stop(): Promise<void>;
}

interface Waiting {
  proxy: Proxy;
  start: boolean;
  failures: number;
  timer?: NodeJS.Timeout;
}

const CONCURRENCY = 32;
const CALL_MILLIS = 10_000;
const RETRY_MILLIS = 500;
const RETRY_MAX_MILLIS = 10_000;

/**
 * Delivers nudges, at most one per Proxy at a time: a flood of changes to one Proxy becomes few signals. While Temporal is
 * away they wait here, and are delivered when it is back.
 */
export function createNudges({ client, taskQueue, warn }: NudgesOptions): Nudges {
  const waiting = new Map<string, Waiting>();
  const inFlight = new Map<string, Promise<void>>();
  const limit = pLimit(CONCURRENCY);
  let stopped = false;

  const queue = (id: string) => void limit(() => deliver(id));

  async function deliver(id: string): Promise<void> {
    const job = waiting.get(id);
    if (!job || stopped) return;
    // Taken out before the call: a change that comes during it needs a nudge of its own, after this one.
    waiting.delete(id);
    const call = client.withDeadline(Date.now() + CALL_MILLIS, () => send(id, job));
    inFlight.set(id, call);
    try {
      await call;
      if (waiting.has(id)) queue(id);
    } catch (error) {
      retry(id, job, error);
    } finally {
      inFlight.delete(id);
    }
  }

  async function send(workflowId: string, { proxy, start }: Waiting): Promise<void> {
    try {
      if (!start) return await client.workflow.getHandle(workflowId).signal(NUDGE);
      await client.workflow.signalWithStart(PROXY_WORKFLOW, {
        workflowId,
        taskQueue,
        args: [refOf(proxy)],
        signal: NUDGE,
        // A late event must not revive a proxy that was cleanly deleted; one terminated by hand must come back.
        workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
        typedSearchAttributes: searchAttributesOf(proxy),
        staticSummary: summaryOf(proxy),
        memo: { proxy: `${proxy.metadata.namespace}/${proxy.metadata.name}`, uid: proxy.metadata.uid },
      });
    } catch (error) {
      if (error instanceof WorkflowNotFoundError || error instanceof WorkflowExecutionAlreadyStartedError) return;
      throw error;
    }
  }

  function retry(id: string, job: Waiting, error: unknown): void {
    if (stopped) return;
    const failures = job.failures + 1;
    const pause = Math.min(RETRY_MAX_MILLIS, RETRY_MILLIS * 2 ** (failures - 1));
    warn(`Could not nudge ${id}; trying again in ${pause} ms`, error);
    const { proxy, start } = waiting.get(id) ?? job;
    const timer = setTimeout(queue, pause, id);
    waiting.set(id, { proxy, start: start || job.start, failures, timer });
  }

  return {
    nudge(proxy, { start }) {
      if (stopped) return;
      const id = proxyWorkflowID(refOf(proxy));
      const known = waiting.get(id);
      waiting.set(id, { ...(known ?? { failures: 0 }), proxy, start: start || (known?.start ?? false) });
      // One that is known is queued or has a timer; what comes during a call is queued after it.
      if (!known && !inFlight.has(id)) queue(id);
    },
    get pending() {
      return new Set([...waiting.keys(), ...inFlight.keys()]).size;
    },
    async stop() {
      stopped = true;
      for (const { timer } of waiting.values()) clearTimeout(timer);
      limit.clearQueue();
      await settled([...inFlight.values()]);
    },
  };
}

const PROXY_PROVIDER = defineSearchAttributeKey('ProxyProvider', 'KEYWORD');
const PROXY_NAME = defineSearchAttributeKey('ProxyName', 'KEYWORD');
const PROXY_NAMESPACE = defineSearchAttributeKey('ProxyNamespace', 'KEYWORD');

function searchAttributesOf({ metadata, spec }: Proxy): TypedSearchAttributes {
  return new TypedSearchAttributes([
    { key: PROXY_NAME, value: metadata.name },
    { key: PROXY_NAMESPACE, value: metadata.namespace },
    { key: PROXY_PROVIDER, value: isExternal(spec) ? 'external' : spec.provider },
  ]);
}

function summaryOf({ metadata, spec }: Proxy): string {
  const kind = isExternal(spec) ? `external, ${spec.endpoint.host}` : `provider ${spec.provider}`;
  return `Proxy ${metadata.namespace}/${metadata.name} (${kind})`;
}
