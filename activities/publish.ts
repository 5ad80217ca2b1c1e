import { isDeepStrictEqual } from 'node:util';
import { type Condition, conditionOf, HealthyReason, type Statement, withCondition } from '../model/condition.ts';
import type { Published, Report } from '../model/observation.ts';
import { phaseOf } from '../model/phase.ts';
import { HASH_ANNOTATION, type Proxy, type ProxyRef, type ProxyStatus, probeSubject } from '../model/proxy.ts';
import { isConflict, type Kubernetes, type KubernetesEvent } from './kubernetes.ts';

export interface PublishDeps {
  kubernetes: Kubernetes;
  now(): number;
  warn(message: string, error: unknown): void;
}

/** A writer that was held up for longer than this has been replaced by another attempt, and must not write any more. */
const DEADLINE_MILLIS = 8_000;

export function createPublish({ kubernetes, now, warn }: PublishDeps) {
  async function announce(ref: ProxyRef, before: ProxyStatus, after: ProxyStatus): Promise<void> {
    for (const event of eventsBetween(before, after)) {
      try {
        await kubernetes.createEvent(ref, event);
      } catch (error) {
        // Events are a courtesy: no step of a proxy's life waits for one.
        warn(`No Kubernetes Event ${event.reason} for ${ref.namespace}/${ref.name}`, error);
      }
    }
  }

  async function write(ref: ProxyRef, report: Report): Promise<Published | undefined> {
    const proxy = await kubernetes.readProxy(ref);
    if (!proxy) return undefined;
    let { resourceVersion } = proxy.metadata;
    if (report.hash !== undefined && proxy.metadata.annotations?.[HASH_ANNOTATION] !== report.hash) {
      const patch = { metadata: { resourceVersion, annotations: { [HASH_ANNOTATION]: report.hash } } };
      const patched = await kubernetes.patchProxy(ref, patch);
      if (!patched) return undefined;
      resourceVersion = patched.metadata.resourceVersion;
    }
    const before = proxy.status ?? {};
    const after = nextStatus(proxy, report, now());
    const changes = changedMembers(before, after);
    if (changes) {
      const written = await kubernetes.patchProxyStatus(ref, { metadata: { resourceVersion }, status: changes });
      if (!written) return undefined;
      checkKept(changes, written);
      await announce(ref, before, after);
    }
    const subject = probeSubject(after);
    return { phase: after.phase ?? 'Pending', ...(subject !== undefined && { subject }) };
  }

  /**
   * Writes what a pass has to say: the hash annotation first, then the status, each only if it changes anything, then the
   * Events that follow from the change. Undefined when the CR is gone.
   */
  return async function publish(ref: ProxyRef, report: Report): Promise<Published | undefined> {
    const deadline = now() + DEADLINE_MILLIS;
    for (;;) {
      try {
        return await write(ref, report);
      } catch (error) {
        if (!isConflict(error) || now() > deadline) throw error;
      }
    }
  };
}

function nextStatus({ metadata, status }: Proxy, report: Report, now: number): ProxyStatus {
  const { providerID, zone, ip, port, incarnation, latencyMillis, lastHealthCheckTime } = report;
  const state = (conditions: Condition[] | undefined, type: Condition['type'], statement: Statement | undefined) =>
    statement ? withCondition(conditions, type, statement, report.generation, now) : conditions;
  const provisioned = state(status?.conditions, 'Provisioned', report.provisioned);
  const conditions = state(provisioned, 'Healthy', report.healthy);
  const merged = { ...status, providerID, zone, ip, port, incarnation, latencyMillis, lastHealthCheckTime };
  const stated = Object.fromEntries(
    Object.entries(merged)
      .map(([key, value]) => [key, value === undefined ? status?.[key as keyof ProxyStatus] : value])
      .filter(([, value]) => value !== undefined && value !== null),
  );
  return {
    ...stated,
    ...(conditions && { conditions }),
    observedGeneration: report.generation,
    phase: phaseOf(conditions, metadata.deletionTimestamp !== undefined),
  };
}

/** A merge patch from one status to the other; undefined when there is nothing to write. */
function changedMembers(before: ProxyStatus, after: ProxyStatus): Record<string, unknown> | undefined {
  const patch: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof ProxyStatus>) {
    if (!isDeepStrictEqual(before[key], after[key])) patch[key] = after[key] ?? null;
  }
  return Object.keys(patch).length > 0 ? patch : undefined;
}

/** An older CRD drops what it does not know, without a word; what follows would rest on what is not there. */
function checkKept(changes: Record<string, unknown>, { status = {} }: Proxy): void {
  const dropped = Object.keys(changes).find((key) => changes[key] !== null && !(key in status));
  if (dropped === undefined) return;
  throw new Error(`The cluster's CRD of Proxy knows no status.${dropped}: kubectl apply --server-side -f deploy/crds`);
}

const ALARMING = /Error|Failed|Abandoned|Exceeded|Timeout|Stopped|RateLimited/;

/** What a person wants to see in `kubectl describe`: every change of a condition's status or reason. */
function eventsBetween(before: ProxyStatus, after: ProxyStatus): KubernetesEvent[] {
  return (['Provisioned', 'Healthy'] as const).flatMap((type) => {
    const old = conditionOf(before.conditions, type);
    const stated = conditionOf(after.conditions, type);
    if (!stated || stated.reason === HealthyReason.NotProbed) return [];
    if (old?.status === stated.status && old.reason === stated.reason) return [];
    const { reason, message } = stated;
    return [{ type: ALARMING.test(reason) ? 'Warning' : 'Normal', reason, message }];
  });
}
