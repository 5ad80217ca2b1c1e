import { createHash } from 'node:crypto';
import { ProviderError } from '../../../model/instance.ts';
import type { Address } from './compute-api.ts';

/**
 * A reserved address that no VM has. The instance's name picks the first one to be tried, so that creates at the same
 * time seldom choose the same; of those that do, all but one fail as if the quota were used up, and choose again.
 * @param addresses what is reserved in the region
 * @param names those that the configuration allows
 * @throws ProviderError, Permanent if none of the names is reserved there, QuotaExceeded if all are in use
 */
export function freeAddress(addresses: Address[], names: readonly string[], instance: string, region: string): string {
  const known = names.flatMap((name) => addresses.find((address) => address.name === name) ?? []);
  if (known.length === 0) {
    const text = `none of the static addresses (${names.join(', ')}) is reserved in region ${region}`;
    throw new ProviderError('Permanent', text);
  }
  const start = createHash('sha256').update(instance).digest().readUInt32BE() % known.length;
  const inOrder = [...known.slice(start), ...known.slice(0, start)];
  const free = inOrder.find(({ status, address }) => status === 'RESERVED' && address);
  if (free?.address) return free.address;
  throw new ProviderError('QuotaExceeded', `all ${known.length} static addresses in region ${region} are in use`);
}
