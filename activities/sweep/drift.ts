import { conditionOf } from '../../model/condition.ts';
import type { InstanceList } from '../../model/instance.ts';
import { isExternal, type Proxy } from '../../model/proxy.ts';

/**
 * The Proxies of a provider whose instance is not what their status says: missing, stopped or at another address. A nudge
 * is all that they get, so a list that lags does no harm.
 */
export function drifted(
  proxies: readonly Proxy[],
  provider: string,
  { instances, unreachable }: InstanceList,
): Proxy[] {
  const byUid = new Map(instances.map((instance) => [instance.uid, instance]));
  return proxies.filter(({ metadata, spec, status }) => {
    if (isExternal(spec) || spec.provider !== provider || metadata.deletionTimestamp) return false;
    // Whoever is on its way up or out is being looked at already.
    if (!status?.providerID || conditionOf(status.conditions, 'Provisioned')?.status !== 'True') return false;
    const instance = byUid.get(metadata.uid);
    // What a partial list lacks is unknown, not absent.
    if (!instance) return unreachable.length === 0;
    return instance.state !== 'Running' || instance.ip !== status.ip;
  });
}
