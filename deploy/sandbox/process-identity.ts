import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxError } from './failure.ts';

/**
 * Which process we mean, safely across pid reuse and reboots: the kernel's start time and boot id go with the pid.
 * The name is only for messages, because a process may rename itself.
 */
export interface ProcessIdentity {
  pid: number;
  /** Field 22 of /proc/<pid>/stat (proc(5)): clock ticks from boot to the process's start. */
  startTicks: string;
  bootId: string;
  argv0: string;
}

export function requireProc(): void {
  if (process.platform === 'linux' && existsSync('/proc/self/stat')) return;
  throw new SandboxError(
    `The sandbox needs Linux with /proc: it finds and stops its processes through it (this is ${process.platform}). ` +
      'Run it in a Linux machine or container.',
  );
}

/** The process that has this pid now; undefined when there is none or it is a zombie. */
export function identify(pid: number): ProcessIdentity | undefined {
  const stat = readProc(`${pid}/stat`);
  if (stat === undefined) return undefined;
  // The second field is the command in parentheses and may itself hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, startTicks] = [fields[0], fields[19]];
  if (startTicks === undefined || state === 'Z' || state === 'X') return undefined;
  return { pid, startTicks, bootId: bootId(), argv0: commandLine(pid)[0] ?? '' };
}

export function isRunning(identity: ProcessIdentity): boolean {
  const now = identify(identity.pid);
  return now !== undefined && now.startTicks === identity.startTicks && now.bootId === identity.bootId;
}

export function commandLine(pid: number): string[] {
  return (readProc(`${pid}/cmdline`) ?? '').split('\0').slice(0, -1);
}

/** Every process with an argument that satisfies `matches`. */
export function findByArgument(matches: (argument: string) => boolean): ProcessIdentity[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids
    .map(Number)
    .filter((pid) => pid !== process.pid && commandLine(pid).some(matches))
    .map(identify)
    .filter((identity) => identity !== undefined);
}

/**
 * Asks with `polite`, then SIGKILL once `graceMs` is over or `hurry` aborts; returns when the process is gone. Rejects when
 * it is still there `killedMs` later, default 10,000: one that waits for a disk, say, can't be ended.
 */
export async function stopProcess(
  identity: ProcessIdentity,
  options: { graceMs: number; killedMs?: number; polite?: NodeJS.Signals; hurry?: AbortSignal | undefined },
): Promise<void> {
  const { graceMs, killedMs = 10_000, polite = 'SIGTERM', hurry } = options;
  const deadline = Date.now() + graceMs;
  let killedAt: number | undefined;
  signalProcess(identity, polite);
  while (isRunning(identity)) {
    if (killedAt !== undefined && Date.now() - killedAt >= killedMs) {
      throw new SandboxError(`Process ${identity.pid} (${identity.argv0}) was killed and does not end.`);
    }
    if (Date.now() >= deadline || hurry?.aborted) {
      signalProcess(identity, 'SIGKILL');
      killedAt ??= Date.now();
    }
    await sleep(25);
  }
}

/** Sends a signal to exactly this process, never to another that got its pid later. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): void {
  if (!isRunning(identity)) return;
  try {
    process.kill(identity.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function bootId(): string {
  return (readProc('sys/kernel/random/boot_id') ?? '').trim();
}

function readProc(name: string): string | undefined {
  try {
    return readFileSync(`/proc/${name}`, 'utf8');
  } catch {
    return undefined;
  }
}
