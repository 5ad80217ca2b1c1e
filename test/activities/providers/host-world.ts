import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Provider } from '../../../activities/providers/contract.ts';
import { createHostProvider, type HostConfig, hostConfig } from '../../../activities/providers/host/index.ts';
import { squidsByConf } from '../../../activities/providers/host/squid-processes.ts';

/** A state directory and a small range of loopback addresses of a test's own. Removed, with its processes, at the end. */
export interface HostWorld {
  stateDir: string;
  config(overrides?: Record<string, unknown>): HostConfig;
  /** A provider on this world; every call makes another object, as another worker would. */
  start(overrides?: Record<string, unknown>): Promise<Provider>;
  /** The processes that run for this world: name of the instance → process ids. */
  squids(): Promise<Map<string, number[]>>;
  /** Kills what runs for one instance, as an operator or the kernel might. */
  kill(name: string): Promise<void>;
}

/** How many instances a world has addresses for: a /28 without network and broadcast address. */
export const WORLD_SIZE = 14;

const octet = (): number => 100 + Math.floor(Math.random() * 150);

export async function hostWorld(): Promise<HostWorld> {
  // With a space: people keep their projects in such folders.
  const stateDir = await mkdtemp(join(tmpdir(), 'host provider '));
  const addresses = `127.${octet()}.${octet()}.0/28`;

  const world: HostWorld = {
    stateDir,
    config: (overrides = {}) =>
      hostConfig.parse({ name: 'local', type: 'host', stateDir, addresses, clients: ['127.0.0.0/8'], ...overrides }),
    start: (overrides) => createHostProvider(world.config(overrides)),
    async squids() {
      const ours = [...(await squidsByConf())].filter(([conf]) => conf.startsWith(`${stateDir}/`));
      return new Map(ours.map(([conf, pids]) => [conf.slice(stateDir.length + 1, -'/squid.conf'.length), pids]));
    },
    async kill(name) {
      for (const pid of (await world.squids()).get(name) ?? []) process.kill(pid, 'SIGKILL');
      await expect.poll(async () => (await world.squids()).has(name)).toBe(false);
    },
  };
  onTestFinished(async () => {
    for (const pid of [...(await world.squids()).values()].flat()) process.kill(pid, 'SIGKILL');
    await rm(stateDir, { recursive: true, force: true });
  });
  return world;
}
