import { readdirSync, readFileSync } from 'node:fs';

/** Pids of this machine; kernel threads among them. */
export function allPids(): number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number);
}

/** Empty for what has ended, zombies included, and for kernel threads. */
export function commandLineOf(pid: number): string[] {
  return readProc(pid, 'cmdline').split('\0').slice(0, -1);
}

/**
 * Processes whose command line or environment mentions a folder: what a sandbox started there, and what it left.
 * @returns one line per process, for people
 */
export function processesThatMention(folder: string): string[] {
  return allPids()
    .filter((pid) => pid !== process.pid && `${readProc(pid, 'cmdline')}\0${readProc(pid, 'environ')}`.includes(folder))
    .map((pid) => `${pid}: ${commandLineOf(pid).join(' ')}`)
    .filter((line) => !line.endsWith(': '));
}

function readProc(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    return '';
  }
}
