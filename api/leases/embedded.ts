import { randomBytes } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { coolsDown, type Lease } from '../../model/lease.ts';
import { createActiveLeases } from './active-leases.ts';
import { createCooldowns, EVERY_TARGET } from './cooldowns.ts';
import { createGroupCommit } from './group-commit.ts';
import { openLeaseFile } from './lease-file.ts';
import { createLeaseRows } from './lease-rows.ts';
import { selectCandidate } from './selection.ts';
import { type Granted, type LeaseStore, LeaseStoreError } from './store.ts';

export interface EmbeddedLeaseStoreSettings {
  /** How long {proxy, target} is left alone after a bad report, and how long an ended lease can still be reported on. */
  cooldownMillis: number;
  /** Milliseconds since the epoch. Default: the system's. */
  clock?: () => number;
}

/** The embedded store on the file at `path`, with what was in it. Throws as `openLeaseFile` does. */
export const openEmbeddedLeaseStore = (path: string, settings: EmbeddedLeaseStoreSettings): LeaseStore =>
  createEmbeddedLeaseStore(openLeaseFile(path), settings);

/** Rows per transaction while trimming, so that a long backlog never holds up the leases. */
const TRIM_SLICE = 500;

/** 192 random bits, 32 characters. */
const newLeaseId = (): string => randomBytes(24).toString('base64url');

/**
 * The lease store of a single replica: decisions are made in memory, where what is active now is indexed, and are answered
 * once SQLite has them. Ended leases live on disk only, until late reports on them are no longer taken.
 *
 * A decision is visible to the next one at once and may still be undone if the commit fails; until then only counts can
 * tell, since nobody has been given its id. Takes over `database` and closes it.
 */
export function createEmbeddedLeaseStore(
  database: DatabaseSync,
  { cooldownMillis, clock = Date.now }: EmbeddedLeaseStoreSettings,
): LeaseStore {
  const rows = createLeaseRows(database);
  const commits = createGroupCommit(database);
  const active = createActiveLeases();
  const cooldowns = createCooldowns();
  const now = neverBackwards(clock);

  for (const lease of rows.leasesEndingAfter(now())) active.swap(undefined, lease);
  for (const { proxyUid, target, until } of rows.cooldownsEndingAfter(now())) cooldowns.set(proxyUid, target, until);

  function replace(before: Lease | undefined, after: Lease): Promise<void> {
    active.swap(before, after);
    return commits.enlist(
      () => rows.putLease(after),
      () => active.swap(after, before),
    );
  }

  function granted(lease: Lease, time: number): Granted {
    return { lease, activeLeases: active.count(lease.proxyUid, time) };
  }

  function coolDown(proxyUid: string, target: string, until: number): Promise<void> {
    const before = cooldowns.set(proxyUid, target, until);
    return commits.enlist(
      () => rows.putCooldown({ proxyUid, target, until }),
      () => cooldowns.set(proxyUid, target, before),
    );
  }

  /** Any lease that reports are still taken on, active or ended. */
  function findReportable(id: string, time: number): Lease | undefined {
    const lease = active.find(id, time) ?? readLease(id);
    return lease && lease.endsAt + cooldownMillis > time ? lease : undefined;
  }

  function readLease(id: string): Lease | undefined {
    try {
      return rows.findLease(id);
    } catch (cause) {
      throw new LeaseStoreError(`the lease file can't be read: ${(cause as Error).message}`, { cause });
    }
  }

  async function deleteInSlices(deleteSlice: (limit: number) => number): Promise<number> {
    let total = 0;
    for (;;) {
      let deleted = 0;
      await commits.enlist(
        () => {
          deleted = deleteSlice(TRIM_SLICE);
        },
        () => {},
      );
      total += deleted;
      if (deleted < TRIM_SLICE) return total;
    }
  }

  return {
    async grant({ candidates, ttlMillis, target, owner }) {
      const time = now();
      const selection = selectCandidate(candidates, target, { active, cooldowns, now: time });
      if (!selection.chosen) {
        const { atCapacity, inCooldown, waitMillis } = selection;
        return { granted: false, atCapacity, inCooldown, waitMillis };
      }
      const proxyUid = selection.chosen.uid;
      const lease: Lease = { id: newLeaseId(), proxyUid, target, owner, grantedAt: time, endsAt: time + ttlMillis };
      await replace(undefined, lease);
      return { granted: true, ...granted(lease, time) };
    },

    async renew(id, ttlMillis) {
      const time = now();
      const before = active.find(id, time);
      if (!before) return undefined;
      const lease: Lease = { ...before, endsAt: time + ttlMillis };
      await replace(before, lease);
      return granted(lease, time);
    },

    async release(id) {
      const time = now();
      const before = active.find(id, time);
      if (!before) return;
      await replace(before, { ...before, endsAt: time });
    },

    async report(id, result, target) {
      const time = now();
      const lease = findReportable(id, time);
      if (!lease) return false;
      if (coolsDown(result)) {
        await coolDown(lease.proxyUid, target ?? lease.target ?? EVERY_TARGET, time + cooldownMillis);
      }
      return true;
    },

    async countActive(proxyUids) {
      const time = now();
      return proxyUids.map((uid) => active.count(uid, time));
    },

    async trim() {
      const time = now();
      active.forgetExpired(time);
      cooldowns.forgetOver(time);
      const leases = await deleteInSlices((limit) => rows.deleteLeasesEndedBy(time - cooldownMillis, limit));
      return leases + (await deleteInSlices((limit) => rows.deleteCooldownsOverBy(time, limit)));
    },

    async close() {
      commits.close();
      if (database.isOpen) database.close();
    },
  };
}

/** A clock that was set back must not bring ended leases back to life, nor hide that their places were given to others. */
function neverBackwards(clock: () => number): () => number {
  let latest = Number.NEGATIVE_INFINITY;
  return () => {
    latest = Math.max(latest, clock());
    return latest;
  };
}
