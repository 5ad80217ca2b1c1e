import { createHash } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';

/**
 * The service name to start a Squid with (`-n`), which also names its shared memory. With one name for all, as is the
 * default, two that start at the same time fail over each other's segments (shm_open: File exists). Letters and digits
 * only, as Squid demands.
 */
export const serviceName = (confPath: string): string =>
  `egress${createHash('sha256').update(confPath).digest('hex').slice(0, 16)}`;

/**
 * Takes the names of a Squid's segments away. It keeps those that it has mapped, and no other process opens them; so
 * this is done as soon as it runs, since one that is killed would leave them in memory until the next reboot.
 */
export async function removeSharedMemory(confPath: string): Promise<void> {
  const segments = await readdir('/dev/shm').catch(() => []);
  const named = segments.filter((segment) => segment.startsWith(`${serviceName(confPath)}-`));
  await Promise.all(named.map((segment) => rm(`/dev/shm/${segment}`, { force: true })));
}
