import { ProvisionedReason } from '../model/condition.ts';
import type { Failure, ObservedManaged } from '../model/observation.ts';
import { type Decision, type Memory, NO_INSTANCE, notProvisioned, type World } from './decision.ts';

/** The zones that a proxy may be in, the preferred one first. Empty where its provider has none, or nobody named one. */
function candidates({ placement, provider }: ObservedManaged): string[] {
  if (!provider.configured || !provider.zonal) return [];
  const preferred = placement.zone ?? provider.zonal.defaultZone;
  return [...new Set([...(preferred === undefined ? [] : [preferred]), ...(placement.zones ?? [])])];
}

/** The zone to begin with. */
export const firstZone = (proxy: ObservedManaged): string | undefined => candidates(proxy)[0];

/** The zone for the next create: the one that the status names, unless the spec was edited since. */
export function zoneToTry(proxy: ObservedManaged): string | undefined {
  const { zone } = proxy.status;
  return zone !== undefined && isCurrent(proxy) && candidates(proxy).includes(zone) ? zone : firstZone(proxy);
}

/**
 * The step when nothing was made in a zone, and another one may do: on to the next, at once; after the last, a wait, and
 * then the first one again. Undefined where there is no other.
 */
export function tryElsewhere(
  { proxy, timing }: World<ObservedManaged>,
  failure: Failure,
  memory: Memory,
): Decision | undefined {
  const zones = candidates(proxy);
  const { zone, providerID } = proxy.status;
  if (zones.every((one) => one === zone)) return undefined;
  const { generation } = proxy;
  const say = (plan: string) => notProvisioned(ProvisionedReason.QuotaExceeded, `${failure.message}; ${plan}`);
  const tried = isCurrent(proxy) ? zones.indexOf(zone ?? '') : -1;
  const next = zones[tried + 1];
  if (next !== undefined) {
    const report = { ...NO_INSTANCE, generation, provisioned: say(`trying ${next} instead`), zone: next };
    return { report, next: 'now', memory: { ...memory, create: 'none' } };
  }
  const provisioned = say(`all of ${zones.join(', ')} have been tried; beginning again later`);
  // A failed create that a providerID names is what a look answers for a while: so it is not tried again before its
  // time, however often something wakes the workflow.
  const again = providerID === undefined ? { zone: firstZone(proxy) ?? null } : {};
  return {
    report: { generation, provisioned, ...again },
    next: { after: timing.quotaRetry, because: 'quota' },
    memory,
  };
}

/** An edit makes all of them worth a try again. */
const isCurrent = ({ status, generation }: ObservedManaged): boolean => status.observedGeneration === generation;
