import { conditionOf } from '../model/condition.ts';
import { PROVIDER_HEALTHS, type ProviderHealth } from '../model/provider-health.ts';
import { GROUP, VERSION } from '../model/proxy.ts';
import { type ListWatch, startListWatch } from './list-watch.ts';
import type { CacheOptions } from './proxy-cache.ts';

export interface ProviderHealths extends ListWatch {
  /** The last sweep could not reach this provider. False where nobody knows. */
  isUnavailable(provider: string): boolean;
}

/** What sweeps have found out about the providers, for those who wait for one to come back. */
export function startProviderHealths(options: Omit<CacheOptions, 'namespace'>): ProviderHealths {
  const unavailable = new Set<string>();
  const put = ({ metadata: { name }, status }: ProviderHealth): void => {
    if (conditionOf(status?.conditions, 'Available')?.status === 'False') unavailable.add(name);
    else unavailable.delete(name);
  };
  const listWatch = startListWatch<ProviderHealth>({
    ...options,
    what: 'ProviderHealths',
    path: `/apis/${GROUP}/${VERSION}/${PROVIDER_HEALTHS}`,
    onList(items) {
      unavailable.clear();
      for (const item of items) put(item);
    },
    onEvent: (type, item) => (type === 'DELETED' ? unavailable.delete(item.metadata.name) : put(item)),
  });
  return {
    get listedAt() {
      return listWatch.listedAt;
    },
    get heardAt() {
      return listWatch.heardAt;
    },
    isUnavailable: (provider) => unavailable.has(provider),
    stop: () => listWatch.stop(),
  };
}
