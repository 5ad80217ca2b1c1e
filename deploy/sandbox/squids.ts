import { readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { allSettled } from './all-or-nothing.ts';
import type { SandboxPaths } from './paths.ts';
import { findByArgument, type ProcessIdentity, stopProcess } from './process-identity.ts';
import { replaceFile } from './write-file.ts';

const graceMs = 3_000;

/**
 * The Squids of these `host` state folders. The orchestrator starts them in sessions of their own, so that they survive
 * it; each one's command line names `<state folder>/<instance>/squid.conf`, which is nobody else's.
 */
export function findSquids(stateFolders: string[]): ProcessIdentity[] {
  const folders = new Set(stateFolders);
  return findByArgument((argument) => basename(argument) === 'squid.conf' && folders.has(dirname(dirname(argument))));
}

/** Stops them; call it when the orchestrator is gone, which would start them again. Returns how many there were. */
export async function stopSquids(stateFolders: string[], hurry?: AbortSignal): Promise<number> {
  const squids = findSquids(stateFolders);
  // Squid ends at once on SIGINT; on SIGTERM it would wait for its clients first.
  await allSettled(squids.map((squid) => stopProcess(squid, { graceMs, polite: 'SIGINT', hurry })));
  return squids.length;
}

/** Kept for `npm run clean`, which may come after a run that was killed and had a providers file of the person's. */
export function rememberSquidFolders(paths: SandboxPaths, stateFolders: string[]): void {
  const all = new Set([...rememberedSquidFolders(paths), ...stateFolders]);
  replaceFile(paths.squidFolders, `${JSON.stringify([...all])}\n`);
}

export function rememberedSquidFolders(paths: SandboxPaths): string[] {
  try {
    return JSON.parse(readFileSync(paths.squidFolders, 'utf8')) as string[];
  } catch {
    return [];
  }
}
