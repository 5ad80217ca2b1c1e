import { type ChildProcess, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { ProviderError } from '../../../model/instance.ts';
import { findSquid } from './squid-processes.ts';
import { removeSharedMemory, serviceName } from './squid-shared-memory.ts';

const POLL_MILLIS = 15;
const ACCEPT_TIMEOUT_MILLIS = 10_000;
const CONNECT_TIMEOUT_MILLIS = 500;
const LEAVING_MILLIS = 200;

export interface SquidToRun {
  /** Absolute path of the Squid binary. */
  program: string;
  confPath: string;
  pidPath: string;
  address: string;
  port: number;
}

/** Someone else listens on the address and port; another address may do. */
export class AddressInUse extends Error {
  override readonly name = 'AddressInUse';
}

/**
 * Sees to it that the Squid runs, and waits until it accepts connections. The caller makes sure that nobody else starts
 * or stops the same one meanwhile.
 *
 * The process is in a session of its own and outlives us, however we end. Its stderr is a pipe that we read until it
 * accepts and then close: Squid ignores SIGPIPE, so from then on its log goes nowhere, and can fill neither pipe nor disk.
 *
 * @returns whether it accepts; false if it lives but did not accept in time.
 * @throws AddressInUse, or ProviderError: Permanent if this host doesn't have the address or may not use the port,
 *   else Transient with Squid's own words.
 */
export async function runSquid(squid: SquidToRun, signal: AbortSignal): Promise<boolean> {
  const deadline = Date.now() + ACCEPT_TIMEOUT_MILLIS;
  const runs = async () => (await findSquid(squid.confPath, squid.pidPath)) !== undefined;
  const started = (await runs()) ? undefined : await start(squid);
  try {
    while (!(await accepts(squid.address, squid.port))) {
      signal.throwIfAborted();
      if (started?.ended() && !(await runs())) {
        await checkAddress(squid);
        throw new ProviderError('Transient', `Squid ended at once: ${started.lastWords()}`);
      }
      if (Date.now() >= deadline) return false;
      await sleep(POLL_MILLIS, undefined, { signal });
    }
    await removeSharedMemory(squid.confPath);
    return true;
  } finally {
    started?.letGo();
  }
}

/** Whether someone accepts connections there. */
export function accepts(address: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, timeout: CONNECT_TIMEOUT_MILLIS });
    const answer = (accepted: boolean) => {
      socket.destroy();
      resolve(accepted);
    };
    socket.once('connect', () => answer(true));
    socket.once('timeout', () => answer(false));
    socket.once('error', () => answer(false));
  });
}

async function start(squid: SquidToRun): Promise<StartedSquid> {
  await checkAddress(squid);
  const child = spawn(squid.program, ['-N', '-f', squid.confPath, '-n', serviceName(squid.confPath)], {
    cwd: '/',
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
    // Nothing else of ours: the environment may hold secrets.
    env: { PATH: process.env.PATH ?? '/usr/sbin:/usr/bin:/sbin:/bin' },
  });
  const started = watchStart(child);
  await writeFile(squid.pidPath, `${child.pid ?? ''}\n`);
  return started;
}

/**
 * Binds the address for a moment, since the kernel's answer is clearer than what Squid makes of it. An address in use
 * is looked at again for a while: a process that was killed loses its command line, by which we know it, before its sockets.
 */
async function checkAddress({ address, port }: SquidToRun): Promise<void> {
  let code = await bindError(address, port);
  for (let waited = 0; code === 'EADDRINUSE' && waited < LEAVING_MILLIS; waited += POLL_MILLIS) {
    await sleep(POLL_MILLIS);
    code = await bindError(address, port);
  }
  if (code === undefined) return;
  if (code === 'EADDRINUSE') throw new AddressInUse(`${address}:${port} is in use by another program`);
  const advice: Record<string, string> = {
    EADDRNOTAVAIL: `this host does not have the address ${address}: add it to an interface (ip address add ${address}/32 dev …), or take it out of the provider's addresses`,
    EACCES: `this user may not listen on port ${port} of ${address}: choose a port from 1024 up, or run the worker with CAP_NET_BIND_SERVICE`,
  };
  throw new ProviderError(advice[code] ? 'Permanent' : 'Transient', advice[code] ?? `${address}:${port}: ${code}`);
}

function bindError(address: string, port: number): Promise<string | undefined> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve) => {
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host: address, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

interface StartedSquid {
  ended(): boolean;
  /** What it said last, for people: its FATAL and ERROR lines if there are any. */
  lastWords(): string;
  letGo(): void;
}

function watchStart(child: ChildProcess): StartedSquid {
  let ended = false;
  let log = '';
  child.once('error', (error) => {
    ended = true;
    log += `FATAL: ${error.message}\n`;
  });
  child.once('exit', () => {
    ended = true;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-8_192);
  });
  child.stderr?.on('error', () => {});
  return {
    ended: () => ended,
    lastWords() {
      const lines = log.split('\n').filter((line) => line.trim() !== '');
      const telling = lines.filter((line) => /FATAL|ERROR|cannot/i.test(line));
      return (telling.length > 0 ? telling : lines).slice(-3).join(' | ').slice(-1_000) || 'it said nothing';
    },
    letGo() {
      child.stderr?.destroy();
      child.unref();
    },
  };
}
