import type { DatabaseSync } from 'node:sqlite';
import { LeaseStoreError } from './store.ts';

export interface GroupCommit {
  /**
   * Runs `write` in the next transaction and resolves once that is committed. If it can't be, `undo` is called and the
   * promise rejects with a LeaseStoreError.
   */
  enlist(write: () => void, undo: () => void): Promise<void>;
  /** Commits what is enlisted; nothing can be enlisted after it. */
  close(): void;
}

interface Enlisted {
  write(): void;
  undo(): void;
  resolve(): void;
  reject(reason: LeaseStoreError): void;
}

/**
 * Everything enlisted in one turn of the event loop shares one transaction: the requests that were read from all sockets
 * together pay for one commit, and a lone one waits for nobody.
 */
export function createGroupCommit(database: DatabaseSync): GroupCommit {
  let group: Enlisted[] = [];
  let closed = false;

  function commit(): void {
    const members = group;
    group = [];
    if (members.length === 0) return;
    try {
      database.exec('BEGIN IMMEDIATE');
      for (const member of members) member.write();
      database.exec('COMMIT');
    } catch (cause) {
      rollBack(database);
      // Backwards: a later member may have built on what an earlier one did.
      for (const member of members.toReversed()) member.undo();
      const reason = new LeaseStoreError(`the lease file can't be written: ${(cause as Error).message}`, { cause });
      for (const member of members) member.reject(reason);
      return;
    }
    for (const member of members) member.resolve();
  }

  return {
    enlist(write, undo) {
      if (closed) {
        undo();
        return Promise.reject(new LeaseStoreError('the lease store is closed'));
      }
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      if (group.length === 0) setImmediate(commit);
      group.push({ write, undo, resolve, reject });
      return promise;
    },
    close() {
      commit();
      closed = true;
    },
  };
}

function rollBack(database: DatabaseSync): void {
  try {
    // Some errors, a full disk among them, have rolled back already.
    if (database.isTransaction) database.exec('ROLLBACK');
  } catch {
    // The transaction is still open, so the next group can't begin, fails too, and tries this again.
  }
}
