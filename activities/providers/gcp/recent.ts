import type { InstanceResource, Location } from './compute-api.ts';
import { ownerOf } from './ownership.ts';
import { formatProviderID } from './provider-id.ts';

const MEMORY_MILLIS = 60_000;
const LIMIT = 10_000;

interface Memory {
  owner?: string | undefined;
  status?: string | undefined;
  /** Its deletion was asked for, and accepted. */
  leaving: boolean;
  /** Milliseconds since the epoch. */
  at: number;
}

/**
 * What this process has just learned of its VMs, so as to ask nothing twice: that the look before a deletion has shown
 * whose it is, and that a deletion is under way. Whatever is forgotten (a restart, another worker) costs one call more.
 */
export interface Recent {
  saw(location: Location, resource: InstanceResource): void;
  askedToDelete(location: Location): void;
  forget(location: Location): void;
  /** Undefined if nothing was learned in the last minute. */
  about(location: Location): Readonly<Memory> | undefined;
}

export function createRecent(now: () => number): Recent {
  const memories = new Map<string, Memory>();

  function about(location: Location): Memory | undefined {
    const memory = memories.get(formatProviderID(location));
    return memory && now() - memory.at < MEMORY_MILLIS ? memory : undefined;
  }

  function remember(location: Location, news: Partial<Memory>): void {
    const key = formatProviderID(location);
    const memory = { leaving: false, ...about(location), ...news, at: now() };
    // A Map keeps the order of insertion: its first key is the oldest.
    memories.delete(key);
    memories.set(key, memory);
    const [oldest] = memories.keys();
    if (memories.size > LIMIT && oldest !== undefined) memories.delete(oldest);
  }

  return {
    about,
    saw: (location, resource) => remember(location, { owner: ownerOf(resource), status: String(resource.status) }),
    askedToDelete: (location) => remember(location, { leaving: true }),
    forget: (location) => void memories.delete(formatProviderID(location)),
  };
}
