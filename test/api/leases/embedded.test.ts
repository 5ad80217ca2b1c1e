import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { createEmbeddedLeaseStore, openEmbeddedLeaseStore } from '../../../api/leases/embedded.ts';
import { openLeaseFile } from '../../../api/leases/lease-file.ts';
import { type Candidate, type LeaseStore, LeaseStoreError } from '../../../api/leases/store.ts';
import { COOLDOWN, leaseStoreConformance } from './conformance.ts';
import { temporaryLeaseFile } from './lease-files.ts';

leaseStoreConformance('embedded', (settings) => openEmbeddedLeaseStore(temporaryLeaseFile(), settings));

const FLEET: Candidate[] = [{ uid: 'a', maxConcurrent: 2 }];

const open = (path: string): LeaseStore => openEmbeddedLeaseStore(path, { cooldownMillis: COOLDOWN });

async function take(store: LeaseStore, target?: string): Promise<string> {
  const outcome = await store.grant({ candidates: FLEET, ttlMillis: 60_000, target, owner: 'test' });
  if (!outcome.granted) throw new Error('not granted');
  return outcome.lease.id;
}

describe('the embedded store over a restart', () => {
  it('has active leases, ended leases and cooldowns again', async () => {
    const path = temporaryLeaseFile();
    const before = open(path);
    const active = await take(before, 'bank');
    const ended = await take(before, 'shop');
    await before.release(ended);
    await before.report(active, 'banned', undefined);
    await before.close();

    const after = open(path);
    expect(await after.countActive(['a'])).toEqual([1]);
    expect(await after.renew(active, 1000)).toMatchObject({ lease: { id: active, target: 'bank', owner: 'test' } });
    expect(await after.renew(ended, 1000)).toBeUndefined();
    expect(await after.report(ended, 'ok', undefined)).toBe(true);
    const refused = await after.grant({ candidates: FLEET, ttlMillis: 1000, target: 'bank', owner: undefined });
    expect(refused).toMatchObject({ granted: false, inCooldown: 1 });
    await after.close();
  });

  it('has every lease that was answered before a kill -9, and is not blocked by who was killed', async () => {
    const path = temporaryLeaseFile();
    const child = spawn(process.execPath, [join(import.meta.dirname, 'granting-process.ts'), path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const closed = once(child, 'close');
    let output = '';
    for await (const chunk of child.stdout.setEncoding('utf8')) {
      output += chunk;
      if (output.length < 100_000 || child.killed) continue;
      expect(() => openLeaseFile(path, 0)).toThrow(/leases\.db is in use by another process\. .* one replica only/);
      child.kill('SIGKILL');
    }

    expect(await closed).toEqual([null, 'SIGKILL']);
    const answered = output.split('\n').slice(0, -1);
    const store = open(path);
    const found = await Promise.all(answered.map((id) => store.renew(id, 60_000)));
    expect(answered.length).toBeGreaterThan(1000);
    expect(found.filter((lease) => lease === undefined)).toEqual([]);
    await store.close();
  });

  it('writes what is pending when it is closed, and takes nothing afterwards', async () => {
    const path = temporaryLeaseFile();
    const store = open(path);
    const pending = take(store);
    await store.close();
    const id = await pending;
    await expect(take(store)).rejects.toThrow('closed');
    const reopened = open(path);
    expect(await reopened.renew(id, 1000)).toBeDefined();
    await reopened.close();
  });
});

describe('the embedded store when the disk is full', () => {
  it('tells every caller, grants nothing in memory either, and works again with room', async () => {
    const database = openLeaseFile(temporaryLeaseFile());
    const store = createEmbeddedLeaseStore(database, { cooldownMillis: COOLDOWN });
    const kept = await take(store);

    database.exec(`PRAGMA max_page_count = ${database.prepare('PRAGMA page_count').get()?.page_count}`);
    const big = { candidates: [{ uid: 'b', maxConcurrent: 99 }], ttlMillis: 1000, target: 'x'.repeat(20_000) };
    const calls = [
      store.grant({ ...big, owner: undefined }),
      store.grant({ ...big, owner: undefined }),
      store.renew(kept, 1),
      store.release(kept),
      store.report(kept, 'banned', 'shop'),
    ];
    for (const outcome of await Promise.allSettled(calls)) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(LeaseStoreError) });
    }
    expect(await store.countActive(['a', 'b'])).toEqual([1, 0]);

    database.exec('PRAGMA max_page_count = 100000');
    expect(await store.renew(kept, 60_000)).toMatchObject({ activeLeases: 1 });
    await expect(take(store, 'shop')).resolves.toBeTypeOf('string');
    await store.close();
  });
});

describe('the lease file', () => {
  it('is readable by nobody else, since a lease id is all it takes to end a lease', async () => {
    const path = temporaryLeaseFile();
    const store = open(path);
    await take(store);
    for (const file of [path, `${path}-wal`]) expect(statSync(file).mode & 0o077).toBe(0);
    await store.close();
  });

  it('of a newer schema is refused and left alone', async () => {
    const path = temporaryLeaseFile();
    await open(path).close();
    const database = new DatabaseSync(path);
    database.exec('PRAGMA user_version = 7');
    database.close();
    expect(() => open(path)).toThrow(/leases\.db was written by a newer version .*schema 7, this one knows 1/);
  });

  it('of another program is refused and left alone', () => {
    const path = temporaryLeaseFile();
    const database = new DatabaseSync(path);
    database.exec('CREATE TABLE bookmark (url TEXT)');
    database.close();
    expect(() => open(path)).toThrow(/leases\.db is a database of another program/);
  });

  it('that is no database at all is named in the error', () => {
    const path = temporaryLeaseFile();
    writeFileSync(path, 'dear diary, '.repeat(1000));
    expect(() => open(path)).toThrow(/leases\.db can't be opened as the lease file: file is not a database/);
  });
});
