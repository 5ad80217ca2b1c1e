import { type Instance, ProviderError } from '../../../model/instance.ts';
import type { Provider } from '../contract.ts';
import { ApiError, type ComputeApi, type Location } from './compute-api.ts';
import type { GcpConfig } from './config.ts';
import { createInstance } from './create.ts';
import { providerError } from './errors.ts';
import { holds, insertFailure, madeFrom, outcomeOf, promised } from './insert-operation.ts';
import { instanceOf, locationOf } from './instance-of.ts';
import { ownedBy, ownerOf } from './ownership.ts';
import { parseProviderID } from './provider-id.ts';
import { createRecent } from './recent.ts';
import { createSightings, ours } from './sightings.ts';

export interface GcpProviderDeps {
  /** Without, Google's client. */
  api?: ComputeApi;
  /** Milliseconds since the epoch. */
  now?: () => number;
}

/**
 * The `gcp` provider: an instance is a Compute Engine VM.
 *
 * - It never waits: inserts and deletes are asked for, and the next look tells what became of them. In the normal course
 *   a VM's life is made of insert, get and delete, with one look at the zone's operations at its end, and a list of
 *   aggregatedList.
 * - When a VM is not there, its last insert operation tells why. It is found by the VM's name, so that nothing has to
 *   be remembered, and tells by its request id which spec it was made from.
 * - A VM that nobody knows the zone of (the answer to its create was lost, then the Proxy was edited) is looked for in
 *   all zones, and is `NotFound` only if all have answered.
 */
export async function createGcpProvider(config: GcpConfig, deps: GcpProviderDeps = {}): Promise<Provider> {
  const { now = Date.now, api = (await import('./google-client.ts')).createGoogleClient(config) } = deps;
  const recent = createRecent(now);
  const sightings = createSightings({ api, recent, project: config.projectId, defaultZone: config.defaults.zone });

  async function remove(location: Location, signal: AbortSignal): Promise<'gone' | 'deleting'> {
    const { leaving, status } = recent.about(location) ?? {};
    if (leaving && status === 'STOPPING') return 'deleting';
    try {
      if (!(await api.delete(location, signal))) return 'gone';
    } catch (error) {
      // Something else is being done to it, an earlier deletion most likely.
      if (!(error instanceof ApiError && error.reasons.includes('resourceNotReady'))) throw error;
      return 'deleting';
    }
    recent.askedToDelete(location);
    return 'deleting';
  }

  return {
    create: (request, signal) =>
      classified(`make ${request.name}`, signal, () =>
        createInstance({ api, config, sightings, recent }, request, signal),
      ),

    get: (ref, signal) =>
      classified(`show ${ref.name}`, signal, async () => {
        const sighting = await sightings.find(ref, signal);
        if (sighting && 'resource' in sighting) return ours(sighting, ref.uid);
        if (sighting) {
          const { insert, location } = sighting;
          if (outcomeOf(insert) === 'pending') return promised(insert, location, ref);
          const failure = insertFailure(insert, `${ref.name} in zone ${location.zone}`);
          const wanted = ref.specHash !== undefined && madeFrom(insert, ref.specHash);
          if (wanted && holds(insert, failure, config.failedInsertSeconds * 1000, now())) throw failure;
        }
        throw new ProviderError('NotFound', `there is no instance ${ref.name} in project ${config.projectId}`);
      }),

    delete: (ref, signal) =>
      classified(`delete ${ref.name}`, signal, async () => {
        const known = ref.providerID ? parseProviderID(ref.providerID) : undefined;
        if (known && recent.about(known)?.owner === ref.uid) return remove(known, signal);
        const sighting = await sightings.find(ref, signal);
        if (!sighting) return 'gone';
        // An insert that is under way can't be called back: what it makes is deleted when it is there.
        if ('insert' in sighting) return outcomeOf(sighting.insert) === 'pending' ? 'deleting' : 'gone';
        if (ownerOf(sighting.resource) !== ref.uid) return 'gone';
        return remove(sighting.location, signal);
      }),

    list: (signal) =>
      classified('list instances', signal, async () => {
        const instances: Instance[] = [];
        const unreachable = new Set<string>();
        for await (const page of api.list(config.projectId, ownedBy(config.name), signal)) {
          instances.push(...page.instances.map((one) => instanceOf(one, locationOf(one, config.projectId))));
          for (const scope of page.unreachable) unreachable.add(scope);
        }
        return { instances, unreachable: [...unreachable] };
      }),

    close: () => api.close(),
  };
}

/** @param attempt what Compute Engine is to do, for people */
async function classified<T>(attempt: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw providerError(error, attempt, signal);
  }
}
