import { afterEach } from 'vitest';
import { type Servers, type System, type SystemOptions, startSystem } from './system.ts';

/** Starts systems one after the other, as deploys do. What a test of the file leaves running is stopped after it. */
export function systemsOfThisFile() {
  const running = new Set<System>();
  afterEach(async () => {
    const left = [...running];
    running.clear();
    for (const system of left) await system.stop();
  });
  return {
    async start(servers: Servers, options: SystemOptions): Promise<System> {
      const system = await startSystem(servers, options);
      running.add(system);
      return system;
    },
    async stop(system: System): Promise<void> {
      running.delete(system);
      await system.stop();
    },
  };
}
