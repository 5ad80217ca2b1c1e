import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxError } from './failure.ts';
import { identify, isRunning, type ProcessIdentity } from './process-identity.ts';

export interface Lock {
  release(): void;
}

/** Takes the lock file, or names the live process that holds it. A holder that is gone doesn't count. */
export function tryLock(path: string): Lock | { holder: ProcessIdentity } {
  mkdirSync(dirname(path), { recursive: true });
  const me = identify(process.pid);
  if (me === undefined) throw new SandboxError('This process does not see itself in /proc.');
  // Written aside and linked into place: nobody ever reads a lock that is half written.
  const aside = `${path}.${process.pid}.${Math.random().toString(36).slice(2)}`;
  writeFileSync(aside, JSON.stringify(me));
  try {
    for (;;) {
      try {
        linkSync(aside, path);
        return { release: () => rmSync(path, { force: true }) };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
      const holder = lockHolder(path);
      if (holder) return { holder };
      removeStale(path, aside);
    }
  } finally {
    rmSync(aside, { force: true });
  }
}

/** The live process that holds the lock, if any. */
export function lockHolder(path: string): ProcessIdentity | undefined {
  const identity = readIdentity(path);
  return identity && isRunning(identity) ? identity : undefined;
}

/** Waits until the lock is free and takes it; `onWait` is told once who holds it. */
export async function waitForLock(
  path: string,
  options: { signal?: AbortSignal | undefined; onWait?: (holder: ProcessIdentity) => void } = {},
): Promise<Lock> {
  for (let told = false; ; ) {
    options.signal?.throwIfAborted();
    const result = tryLock(path);
    if ('release' in result) return result;
    if (!told) options.onWait?.(result.holder);
    told = true;
    await sleep(500, undefined, options.signal ? { signal: options.signal } : {});
  }
}

function removeStale(path: string, aside: string): void {
  const moved = `${aside}.stale`;
  try {
    renameSync(path, moved);
  } catch {
    return; // Another process removed it first.
  }
  // Between our look and the rename, someone may have taken it for good: then it goes back.
  if (lockHolder(moved)) linkSync(moved, path);
  rmSync(moved, { force: true });
}

function readIdentity(path: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ProcessIdentity;
  } catch {
    return undefined;
  }
}
