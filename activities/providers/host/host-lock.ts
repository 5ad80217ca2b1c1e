import { createHash } from 'node:crypto';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const RETRY_MILLIS = 5;

/** Runs `work` while no one else on this host, in this process or another, runs work under the same key. */
export type HostLock = <T>(key: string, signal: AbortSignal, work: () => Promise<T>) => Promise<T>;

/**
 * A lock that can't be left behind: the kernel gives a name in Linux's abstract socket namespace to one process, and
 * takes it back when that process ends, however it ends.
 *
 * @param scope - Separates the keys of one user of the lock from another's: its state directory.
 */
export function createHostLock(scope: string): HostLock {
  return async (key, signal, work) => {
    const name = createHash('sha256').update(`${scope}\0${key}`).digest('hex');
    let release = await tryListen(name);
    while (!release) {
      await sleep(RETRY_MILLIS, undefined, { signal });
      release = await tryListen(name);
    }
    try {
      return await work();
    } finally {
      await release();
    }
  };
}

/** Holds the name and returns how to give it back, or undefined if someone holds it already. */
function tryListen(name: string): Promise<(() => Promise<void>) | undefined> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error),
    );
    server.listen(`\0egress-host-${name}`, () => resolve(() => new Promise((closed) => server.close(() => closed()))));
  });
}
