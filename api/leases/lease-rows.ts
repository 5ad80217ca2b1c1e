import type { DatabaseSync } from 'node:sqlite';
import type { Lease } from '../../model/lease.ts';

export interface CooldownRow {
  proxyUid: string;
  target: string;
  until: number;
}

/** The lease file's rows, one prepared statement each. Times are milliseconds since the epoch. */
export interface LeaseRows {
  putLease(lease: Lease): void;
  findLease(id: string): Lease | undefined;
  leasesEndingAfter(time: number): Iterable<Lease>;
  putCooldown(row: CooldownRow): void;
  cooldownsEndingAfter(time: number): Iterable<CooldownRow>;
  /** Both return how many rows they deleted, at most `limit`. */
  deleteLeasesEndedBy(time: number, limit: number): number;
  deleteCooldownsOverBy(time: number, limit: number): number;
}

export function createLeaseRows(database: DatabaseSync): LeaseRows {
  const leaseColumns = 'id, proxy_uid AS proxyUid, target, owner, granted_at AS grantedAt, ends_at AS endsAt';
  const putLease = database.prepare(
    `INSERT INTO lease (id, proxy_uid, target, owner, granted_at, ends_at) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET ends_at = excluded.ends_at`,
  );
  const findLease = database.prepare(`SELECT ${leaseColumns} FROM lease WHERE id = ?`);
  const leasesEndingAfter = database.prepare(`SELECT ${leaseColumns} FROM lease WHERE ends_at > ? ORDER BY ends_at`);
  const putCooldown = database.prepare(
    `INSERT INTO cooldown (proxy_uid, target, until) VALUES (?, ?, ?)
     ON CONFLICT (proxy_uid, target) DO UPDATE SET until = excluded.until`,
  );
  const cooldownsEndingAfter = database.prepare(
    'SELECT proxy_uid AS proxyUid, target, until FROM cooldown WHERE until > ?',
  );
  const deleteLeases = database.prepare(
    'DELETE FROM lease WHERE id IN (SELECT id FROM lease WHERE ends_at <= ? LIMIT ?)',
  );
  const deleteCooldowns = database.prepare(
    `DELETE FROM cooldown WHERE (proxy_uid, target) IN (SELECT proxy_uid, target FROM cooldown WHERE until <= ? LIMIT ?)`,
  );

  return {
    putLease({ id, proxyUid, target, owner, grantedAt, endsAt }) {
      putLease.run(id, proxyUid, target ?? null, owner ?? null, grantedAt, endsAt);
    },
    findLease(id) {
      const row = findLease.get(id);
      return row && toLease(row);
    },
    leasesEndingAfter: (time) => leasesEndingAfter.all(time).map(toLease),
    putCooldown({ proxyUid, target, until }) {
      putCooldown.run(proxyUid, target, until);
    },
    cooldownsEndingAfter: (time) => cooldownsEndingAfter.all(time) as unknown as CooldownRow[],
    deleteLeasesEndedBy: (time, limit) => Number(deleteLeases.run(time, limit).changes),
    deleteCooldownsOverBy: (time, limit) => Number(deleteCooldowns.run(time, limit).changes),
  };
}

function toLease(row: Record<string, unknown>): Lease {
  const stored = row as unknown as Omit<Lease, 'target' | 'owner'> & { target: string | null; owner: string | null };
  return { ...stored, target: stored.target ?? undefined, owner: stored.owner ?? undefined };
}
