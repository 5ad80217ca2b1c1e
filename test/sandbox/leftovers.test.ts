import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { lockHolder, tryLock } from '../../deploy/sandbox/lock.ts';
import { identify, isRunning, type ProcessIdentity, signalProcess } from '../../deploy/sandbox/process-identity.ts';
import { stopLeftovers } from '../../deploy/sandbox/processes.ts';
import { findSquids, stopSquids } from '../../deploy/sandbox/squids.ts';

let dir: string;
let started: ProcessIdentity[];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'sandbox-test-'));
  started = [];
});

afterEach(() => {
  for (const identity of started) signalProcess(identity, 'SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

/** A process that does nothing for a minute, with these arguments on its command line. */
function idle(...args: string[]): ProcessIdentity {
  const { pid = -1 } = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)', '--', ...args], {
    stdio: 'ignore',
  });
  const identity = identify(pid);
  if (!identity) throw new Error('the process did not start');
  started.push(identity);
  return identity;
}

function record(name: string, identity: ProcessIdentity): void {
  writeFileSync(join(dir, `${name}.json`), JSON.stringify(identity));
}

it('a recorded process that still runs is stopped, and its record removed', async () => {
  const child = idle();
  record('etcd', child);
  expect(await stopLeftovers(dir, [['etcd']])).toEqual([`etcd (process ${child.pid})`]);
  expect(isRunning(child)).toBe(false);
  expect(readdirSync(dir)).toEqual([]);
});

it.each([
  ['got the pid later', { startTicks: '1' }],
  ['has the pid since the machine restarted', { bootId: 'another' }],
])('a process that %s is left alone', async (_, difference) => {
  const child = idle();
  record('etcd', { ...child, ...difference });
  expect(await stopLeftovers(dir, [['etcd']])).toEqual([]);
  expect(isRunning(child)).toBe(true);
});

it('a record that is half written is no obstacle', async () => {
  writeFileSync(join(dir, 'etcd.json'), '{"pid":');
  expect(await stopLeftovers(dir, [['etcd']])).toEqual([]);
});

it('only the Squids of these state folders are found', async () => {
  const ours = idle('-N', '-f', join(dir, 'host/proxy-a/squid.conf'));
  const others = idle('-N', '-f', join(dir, 'other/proxy-a/squid.conf'));
  expect(findSquids([join(dir, 'host')]).map(({ pid }) => pid)).toEqual([ours.pid]);
  expect(await stopSquids([join(dir, 'host')])).toBe(1);
  expect([isRunning(ours), isRunning(others)]).toEqual([false, true]);
});

it('a lock is refused while its holder lives, and taken over when it is gone', () => {
  const path = join(dir, 'lock.json');
  const child = idle();
  writeFileSync(path, JSON.stringify(child));
  expect(tryLock(path)).toEqual({ holder: child });
  writeFileSync(path, JSON.stringify({ ...child, startTicks: '1' }));
  const lock = tryLock(path);
  expect(lockHolder(path)?.pid).toBe(process.pid);
  if ('release' in lock) lock.release();
  expect(readdirSync(dir)).toEqual([]);
});
