import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { LeaseStoreError } from './store.ts';

/** "LEAS": tells our files from other SQLite databases. */
const APPLICATION_ID = 0x4c454153;
const SCHEMA_VERSION = 1;

/** How long a restart waits for the process before it to let go of the file. */
const LOCK_PATIENCE_MILLIS = 2_000;

const SQLITE_BUSY = 5;

const SCHEMA = `
  CREATE TABLE lease (
    id TEXT PRIMARY KEY,
    proxy_uid TEXT NOT NULL,
    target TEXT,
    owner TEXT,
    granted_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX lease_by_end ON lease (ends_at);
  CREATE TABLE cooldown (
    proxy_uid TEXT NOT NULL,
    target TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (proxy_uid, target)
  ) STRICT, WITHOUT ROWID;
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA_VERSION};
`;

/**
 * Opens the file of the embedded lease store, making it and its folder where missing, and keeps every other process out
 * until it is closed or this process dies, however it dies: the lock is the kernel's. The file must be on a local disk.
 *
 * What is committed survives a kill -9 of this process. A power cut may cost the last moments (synchronous=NORMAL), never
 * the file.
 *
 * @throws LeaseStoreError naming the file when it is in use, was written by a newer version, is not ours, or can't be opened.
 */
export function openLeaseFile(path: string, patienceMillis: number = LOCK_PATIENCE_MILLIS): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    mkdirSync(dirname(path), { recursive: true });
    // A lease id is all it takes to end somebody's lease; SQLite gives its log the mode of the file that it finds.
    if (!existsSync(path)) writeFileSync(path, '', { mode: 0o600 });
    database = new DatabaseSync(path, { timeout: patienceMillis });
    // Exclusive before WAL: then no shared-memory file exists that others could join through.
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
    database.exec('BEGIN EXCLUSIVE; COMMIT');
    prepareSchema(database, path);
    return database;
  } catch (error) {
    database?.close();
    throw error instanceof LeaseStoreError
      ? error
      : new LeaseStoreError(whyNotOpened(path, error as Error), { cause: error });
  }
}

function prepareSchema(database: DatabaseSync, path: string): void {
  const version = readNumber(database, 'SELECT user_version AS value FROM pragma_user_version');
  const applicationId = readNumber(database, 'SELECT application_id AS value FROM pragma_application_id');
  const tables = readNumber(database, 'SELECT count(*) AS value FROM sqlite_schema');
  if (tables === 0) {
    database.exec(`BEGIN; ${SCHEMA} COMMIT`);
  } else if (applicationId !== APPLICATION_ID) {
    throw new LeaseStoreError(`${path} is a database of another program; name another file for the leases`);
  } else if (version > SCHEMA_VERSION) {
    throw new LeaseStoreError(
      `${path} was written by a newer version of this program (schema ${version}, this one knows ${SCHEMA_VERSION}); ` +
        'run that version, or name another file and start without leases',
    );
  }
}

const readNumber = (database: DatabaseSync, sql: string): number => Number(database.prepare(sql).get()?.value);

function whyNotOpened(path: string, error: Error & { errcode?: number }): string {
  if (error.errcode === SQLITE_BUSY) {
    return (
      `${path} is in use by another process. The embedded lease store serves one replica only: ` +
      'stop the other process, or give this one a file of its own'
    );
  }
  return `${path} can't be opened as the lease file: ${error.message}`;
}
