import { isActive, type Lease } from '../../model/lease.ts';

/** The leases that count right now, by id and by proxy. */
export interface ActiveLeases {
  find(id: string, now: number): Lease | undefined;
  count(proxyUid: string, now: number): number;
  /** When the proxy has fewer than `limit` active leases, if none is renewed or released; undefined: never. */
  freeAt(proxyUid: string, limit: number, now: number): number | undefined;
  /** Takes one value out and puts another in. Swapping them back is the exact inverse, which is how a failed write is undone. */
  swap(before: Lease | undefined, after: Lease | undefined): void;
  /** Frees the memory of expired leases on proxies that nobody asked for since. */
  forgetExpired(now: number): void;
}

/**
 * Each proxy's leases are kept in order of expiry, so the expired ones are at the front and fall off when the proxy is next
 * looked at: no timers, and no call ever walks all leases.
 */
export function createActiveLeases(): ActiveLeases {
  const byId = new Map<string, Lease>();
  const byProxy = new Map<string, Lease[]>();

  function current(proxyUid: string, now: number): readonly Lease[] {
    const leases = byProxy.get(proxyUid);
    if (!leases) return [];
    let expired = 0;
    while (expired < leases.length && !isActive(leases[expired] as Lease, now)) expired++;
    if (expired > 0) for (const lease of leases.splice(0, expired)) byId.delete(lease.id);
    if (leases.length === 0) byProxy.delete(proxyUid);
    return leases;
  }

  function insert(lease: Lease): void {
    byId.set(lease.id, lease);
    const leases = byProxy.get(lease.proxyUid);
    if (!leases) {
      byProxy.set(lease.proxyUid, [lease]);
      return;
    }
    const later = leases.findLastIndex((other) => other.endsAt <= lease.endsAt) + 1;
    leases.splice(later, 0, lease);
  }

  function remove(lease: Lease): void {
    byId.delete(lease.id);
    const leases = byProxy.get(lease.proxyUid) ?? [];
    const index = leases.findIndex((other) => other.id === lease.id);
    if (index >= 0) leases.splice(index, 1);
    if (leases.length === 0) byProxy.delete(lease.proxyUid);
  }

  return {
    find(id, now) {
      const lease = byId.get(id);
      return lease && isActive(lease, now) ? lease : undefined;
    },
    count: (proxyUid, now) => current(proxyUid, now).length,
    freeAt(proxyUid, limit, now) {
      const leases = current(proxyUid, now);
      return leases.length < limit ? now : leases[leases.length - limit]?.endsAt;
    },
    swap(before, after) {
      if (before) remove(before);
      if (after) insert(after);
    },
    forgetExpired(now) {
      for (const proxyUid of [...byProxy.keys()]) current(proxyUid, now);
    },
  };
}
