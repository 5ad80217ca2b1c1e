import { type Instance, type InstanceRequest, ProviderError } from '../../../model/instance.ts';
import type { HostInstances } from './host-instances.ts';
import type { InstanceRecord } from './instance-store.ts';
import type { HostLogger } from './logger.ts';
import { AddressInUse } from './squid-start.ts';

/** How many addresses are tried whose port is taken; beyond, something listens on all of them. */
const ADDRESS_TRIES = 16;

/**
 * Makes the instance, or finishes what an earlier create has begun. The caller holds the instance's lock.
 *
 * A create that is refused leaves nothing; one that was given up leaves what it has, and the next one goes on with it.
 *
 * @param existing - The record of the instance, if there is one; it is known to be ours.
 */
export async function createInstance(
  { instances, logger }: { instances: HostInstances; logger: HostLogger },
  request: InstanceRequest,
  existing: InstanceRecord | undefined,
  signal: AbortSignal,
): Promise<Instance> {
  const inUse = new Set<string>();
  let record = existing?.deleting ? undefined : existing;
  if (existing?.deleting) await finishDeletion(instances, existing);

  while (inUse.size < ADDRESS_TRIES) {
    const isNew = record === undefined;
    // Whatever runs under the name of an instance that does not exist has lost its record.
    if (isNew) await instances.stop(request.name);
    record ??= await instances.claim(request, inUse, signal);
    try {
      const accepting = await instances.run(record, signal);
      return instances.asInstance(record, accepting ? 'Running' : 'Provisioning');
    } catch (error) {
      const addressInUse = error instanceof AddressInUse;
      if (addressInUse || (isNew && !signal.aborted)) await instances.destroy(record);
      if (!addressInUse) throw error;
      logger.warn({ instance: request.name, address: record.address }, `${error.message}; trying another address`);
      inUse.add(record.address);
      record = undefined;
    }
  }
  const tried = `${[...inUse].slice(0, 3).join(', ')} …`;
  throw new ProviderError(
    'Transient',
    `another program has port ${request.port} on each of ${inUse.size} addresses tried (${tried}); does something listen on all addresses?`,
  );
}

async function finishDeletion(instances: HostInstances, record: InstanceRecord): Promise<void> {
  if (await instances.destroy(record)) return;
  throw new ProviderError('Transient', `the deletion of the instance that was there has not ended yet`);
}
