import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { removeSharedMemory } from './squid-shared-memory.ts';

const POLL_MILLIS = 10;
const KILL_WAIT_MILLIS = 3_000;

/**
 * The Squid processes of this host by the configuration file that they were started with, from /proc. The command line
 * is the only witness: pid files go stale and pids are used again.
 */
export async function squidsByConf(): Promise<Map<string, number[]>> {
  const pids = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry)).map(Number);
  const found = new Map<string, number[]>();
  for (const pid of pids) {
    const conf = confOf(pid);
    if (conf !== undefined) found.set(conf, [...(found.get(conf) ?? []), pid]);
  }
  return found;
}

/** The process that runs with this configuration file. The pid file is a shortcut that spares looking at all of /proc. */
export async function findSquid(confPath: string, pidPath: string): Promise<number | undefined> {
  const noted = Number(await readFile(pidPath, 'utf8').catch(() => ''));
  if (Number.isInteger(noted) && noted > 0 && confOf(noted) === confPath) return noted;
  return (await squidsByConf()).get(confPath)?.[0];
}

/**
 * Ends every process that runs with this configuration file, and waits until they are gone. Squid closes its port at
 * once on SIGTERM, but takes seconds to leave: after `graceMillis`, in which requests may end, it is killed. It keeps
 * nothing that a kill could damage.
 *
 * @returns false if one is still there, which only the kernel can cause.
 */
export async function stopSquids(confPath: string, graceMillis: number): Promise<boolean> {
  const pids = (await squidsByConf()).get(confPath) ?? [];
  const ended = await Promise.all(
    pids.map(async (pid) => {
      const { startTime } = await statOf(pid);
      signalSquid(pid, 'SIGTERM');
      if (await leaves(pid, startTime, graceMillis)) return true;
      signalSquid(pid, 'SIGKILL');
      return leaves(pid, startTime, KILL_WAIT_MILLIS);
    }),
  );
  if (!ended.every(Boolean)) return false;
  await removeSharedMemory(confPath);
  return true;
}

/** The argument of `-f` of a Squid; undefined for other processes, and for those that have ended (zombies too). */
function confOf(pid: number): string | undefined {
  const [program, ...args] = commandLineOf(pid).split('\0');
  const at = args.indexOf('-f');
  return program?.includes('squid') && at >= 0 ? args[at + 1] : undefined;
}

/** Read synchronously: it comes from memory, in microseconds, while each trip to a thread and back costs several times that. */
function commandLineOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

/** State letter and start time, see proc_pid_stat(5); both empty once there is no such process. */
async function statOf(pid: number): Promise<{ state: string; startTime: string }> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const [state = '', ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { state, startTime: fields[18] ?? '' };
}

/** A process on its way out loses its command line before its sockets; a zombie has lost both. */
async function leaves(pid: number, startTime: string, withinMillis: number): Promise<boolean> {
  const deadline = Date.now() + withinMillis;
  for (;;) {
    const now = await statOf(pid);
    if (now.startTime !== startTime || now.state === 'Z' || now.state === '') return true;
    if (Date.now() >= deadline) return false;
    await sleep(POLL_MILLIS);
  }
}

function signalSquid(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
