import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { lockHolder, tryLock } from '../../deploy/sandbox/lock.ts';
import { nodeLayout } from '../../deploy/sandbox/node/layout.ts';
import { markOf, removeNode } from '../../deploy/sandbox/node/remove-node.ts';
import { isRunning, type ProcessIdentity, signalProcess } from '../../deploy/sandbox/process-identity.ts';
import { stopLeftovers } from '../../deploy/sandbox/processes.ts';
import { findSquids, stopSquids } from '../../deploy/sandbox/squids.ts';
import { idleProcess } from './idle-process.ts';

let dir: string;
let started: ProcessIdentity[];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'sandbox-test-'));
  started = [];
});

afterEach(() => {
  vi.restoreAllMocks();
  for (const identity of started) signalProcess(identity, 'SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

function idle(...args: string[]): ProcessIdentity {
  const identity = idleProcess(...args);
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

it('of a node, whatever has its mark is ended', async () => {
  const layout = nodeLayout({ dir, isDefault: false });
  const first = idle(markOf(layout));
  expect(await removeNode(layout)).toBe(true);
  expect(isRunning(first)).toBe(false);
  expect(await removeNode(layout)).toBe(false);
});

it('a process that takes no notice of SIGKILL is given up and named', async () => {
  const layout = nodeLayout({ dir, isDefault: false });
  const stuck = idle(markOf(layout));
  vi.spyOn(process, 'kill').mockReturnValue(true);
  await expect(removeNode(layout, 100)).rejects.toThrow(
    expect.objectContaining({
      errors: [expect.objectContaining({ message: expect.stringContaining(`${stuck.pid}`) })],
    }),
  );
});

it('one leftover that does not end keeps none of the others, nor its record', async () => {
  const [stuck, child] = [idle(), idle()];
  record('kube-apiserver', stuck);
  record('etcd', child);
  const { kill } = process;
  vi.spyOn(process, 'kill').mockImplementation((pid, signal) => pid === stuck.pid || kill(pid, signal));
  const hurry = AbortSignal.abort();
  await expect(stopLeftovers(dir, [['kube-apiserver'], ['etcd']], { hurry, killedMs: 100 })).rejects.toThrow();
  expect([isRunning(stuck), isRunning(child)]).toEqual([true, false]);
  expect(readdirSync(dir)).toEqual(['kube-apiserver.json']);
});
