import { dirname, relative } from 'node:path';
import type { HostInstances } from './host-instances.ts';
import type { HostLock } from './host-lock.ts';
import { INSTANCE_NAME, type InstanceStore } from './instance-store.ts';
import type { HostLogger } from './logger.ts';
import { squidsByConf } from './squid-processes.ts';

/** How many Squids start at the same time: starting one is all CPU. */
const PARALLEL = 4;
const TIMEOUT_MILLIS = 30_000;

export interface ReviveDeps {
  store: InstanceStore;
  instances: HostInstances;
  lock: HostLock;
  logger: HostLogger;
}

/**
 * Brings the host to what the state directory says, once, before the provider serves: as after a reboot of machines
 * that start by themselves. What is recorded runs again, at the same address and with the same configuration; what was
 * half deleted is finished off; what runs without a record is ended; remnants of crashes go. A failure concerns one
 * instance, which is then `Stopped`, and is logged.
 */
export async function revive({ store, instances, lock, logger }: ReviveDeps): Promise<void> {
  await lock('addresses', AbortSignal.timeout(TIMEOUT_MILLIS), () => store.removeRemnants());

  async function reviveOne(name: string, signal: AbortSignal): Promise<void> {
    const record = await store.read(name);
    if (record === undefined) {
      if (await instances.stop(name)) logger.warn({ instance: name }, 'ended a Squid without a record');
    } else if (record.deleting) {
      await instances.destroy(record);
      logger.info({ instance: name }, 'finished the deletion of an instance');
    } else if ((await instances.stateOf(record)).state === 'Stopped') {
      await instances.run(record, signal);
      logger.info({ instance: name, address: record.address, port: record.port }, 'started the instance again');
    }
  }

  const queue = new Set([...(await store.names()), ...(await namesOfRunning(store))]).values();
  const serve = async (): Promise<void> => {
    for (const name of queue) {
      const signal = AbortSignal.timeout(TIMEOUT_MILLIS);
      await lock(`instance/${name}`, signal, () => reviveOne(name, signal)).catch((error) =>
        logger.warn({ instance: name, error: String(error) }, 'could not bring back an instance'),
      );
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, serve));
}

/** Names of instances that a Squid runs for, recorded or not. */
async function namesOfRunning(store: InstanceStore): Promise<string[]> {
  const stateDir = dirname(dirname(store.confPath('any')));
  return [...(await squidsByConf()).keys()]
    .map((confPath) => dirname(relative(stateDir, confPath)))
    .filter((name) => INSTANCE_NAME.test(name));
}
