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

/** The zone for the next create: the one that the status names, unless an edit has taken it off the list. */
export function zoneToTry(proxy: ObservedManaged): string | undefined {
  const { zone } = proxy.status;
  return zone !== undefined && candidates(proxy).includes(zone) ? zone : firstZone(proxy);
}

/**
 * The step when a zone has run out of machines, and it is certain that none was made there: on to the next zone, at
 * once; after the last one, a wait, and then the first one again. Undefined where there is no other zone.
 */
export function afterStockout(
  { proxy, timing }: World<ObservedManaged>,
  failure: Failure,
  memory: Memory,
): Decision | undefined {
  const zones = candidates(proxy);
  const zone = zones[zones.indexOf(proxy.status.zone ?? '') + 1] ?? zones[0];
  if (zones.length < 2 || zone === undefined) return undefined;
  const all = zone === zones[0];
  const plan = all ? `all of ${zones.join(', ')} have been tried; beginning again later` : `trying ${zone} instead`;
  const provisioned = notProvisioned(ProvisionedReason.QuotaExceeded, `${failure.message}; ${plan}`);
  return {
    report: { ...NO_INSTANCE, generation: proxy.generation, provisioned, zone },
    next: all ? { after: timing.quotaRetry, because: 'quota' } : 'now',
    memory: { ...memory, create: 'none' },
  };
}
