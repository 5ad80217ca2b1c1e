import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { SandboxError } from './failure.ts';
import { waitForLock } from './lock.ts';
import type { ProcessIdentity } from './process-identity.ts';

export interface CacheEntry {
  cache: string;
  /** Folder name; holds everything that the content depends on: version, hashes, platform. */
  key: string;
  /** The file that the finished entry must hold. */
  file: string;
}

/** The path of a finished entry. A folder is only ever renamed into place complete, so being there is enough. */
export function cachedFile(entry: CacheEntry): string | undefined {
  const path = join(entry.cache, entry.key, entry.file);
  return existsSync(path) ? path : undefined;
}

/**
 * Fills an entry once, however many runs ask for it at the same time: one makes it, in a folder aside, the others wait.
 * `make` gets that empty folder.
 */
export async function fillCache(
  entry: CacheEntry,
  make: (folder: string) => Promise<void>,
  options: { signal?: AbortSignal | undefined; onWait: (holder: ProcessIdentity) => void },
): Promise<string> {
  mkdirSync(entry.cache, { recursive: true });
  const lock = await waitForLock(join(entry.cache, `${entry.key}.lock`), options);
  try {
    const present = cachedFile(entry);
    if (present) return present;
    removeAbandoned(entry);
    const aside = join(entry.cache, `${entry.key}.making-${process.pid}`);
    mkdirSync(aside);
    try {
      await make(aside);
      rmSync(join(entry.cache, entry.key), { recursive: true, force: true });
      renameSync(aside, join(entry.cache, entry.key));
    } finally {
      rmSync(aside, { recursive: true, force: true });
    }
    const made = cachedFile(entry);
    if (!made) throw new SandboxError(`${entry.key} holds no ${entry.file}.`);
    return made;
  } finally {
    lock.release();
  }
}

/** We hold the lock, so whatever is half made under this key belongs to a run that was killed. */
function removeAbandoned(entry: CacheEntry): void {
  for (const name of readdirSync(entry.cache)) {
    if (name.startsWith(`${entry.key}.making-`)) rmSync(join(entry.cache, name), { recursive: true, force: true });
  }
}
