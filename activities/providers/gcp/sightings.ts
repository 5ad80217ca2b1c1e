import { type InstanceRef, ProviderError } from '../../../model/instance.ts';
import { ApiError, type ComputeApi, type InstanceResource, type Location, type Operation } from './compute-api.ts';
import { outcomeOf } from './insert-operation.ts';
import { instanceOf, locationOf } from './instance-of.ts';
import { madeFor, ownerOf } from './ownership.ts';
import { parseProviderID } from './provider-id.ts';
import type { Recent } from './recent.ts';

/** What there is of an instance: the VM itself, or an insert that has not made it, or not yet. */
export type Sighting = { location: Location; resource: InstanceResource } | { location: Location; insert: Operation };

export interface Sightings {
  /** Undefined only when it is certain that there is nothing. */
  find(ref: InstanceRef, signal: AbortSignal): Promise<Sighting | undefined>;
  at(location: Location, signal: AbortSignal): Promise<Sighting | undefined>;
}

export interface SightingsDeps {
  api: ComputeApi;
  recent: Recent;
  /** For instances whose providerID is not known. */
  project: string;
  defaultZone: string | undefined;
}

/** Finds instances: where their providerID says, else in the zone of the placement, else wherever one of ours is. */
export function createSightings({ api, recent, project, defaultZone }: SightingsDeps): Sightings {
  async function at(location: Location, signal: AbortSignal): Promise<Sighting | undefined> {
    const resource = await api.get(location, signal);
    if (resource) {
      recent.saw(location, resource);
      return { location, resource };
    }
    recent.forget(location);
    // Also after a deletion of ours: another worker may have begun to make the next one since.
    const insert = await api.lastInsert(location, signal);
    return insert && outcomeOf(insert) !== 'over' ? { location, insert } : undefined;
  }

  /** A zone that there is not, by an edit's mistake, has nothing; it must not be in the way of a deletion. */
  async function inZone(location: Location, signal: AbortSignal): Promise<Sighting | undefined> {
    try {
      return await at(location, signal);
    } catch (error) {
      if (error instanceof ApiError && isUnknownZone(error)) return undefined;
      throw error;
    }
  }

  /** The placement may have been edited since a create whose answer was lost. */
  async function anywhere({ name, uid }: InstanceRef, signal: AbortSignal): Promise<Sighting | undefined> {
    const unreachable: string[] = [];
    for await (const page of api.list(project, madeFor(name, uid), signal)) {
      const [resource] = page.instances;
      if (resource) return { location: locationOf(resource, project), resource };
      unreachable.push(...page.unreachable);
    }
    if (unreachable.length === 0) return undefined;
    throw new ProviderError('Transient', `${name} may be in a zone that does not answer: ${unreachable.join(', ')}`);
  }

  return {
    at,
    async find(ref, signal) {
      if (ref.providerID) return at(parseProviderID(ref.providerID), signal);
      const zone = ref.placement?.zone ?? defaultZone;
      const near = zone ? await inZone({ project, zone, name: ref.name }, signal) : undefined;
      const failed = near && 'insert' in near && outcomeOf(near.insert) === 'failed';
      if (near && !failed) return near;
      return (await anywhere(ref, signal)) ?? near;
    },
  };
}

/** Of a zone that there is not, the API says either that it is invalid, or that nobody may see it. */
const isUnknownZone = ({ status, message }: ApiError): boolean =>
  status === 400 || (status === 403 && /'locations\/[^']*' \(or it may not exist\)/.test(message));

/** The VM, as long as it was made for this Proxy. */
export function ours({ location, resource }: { location: Location; resource: InstanceResource }, uid: string) {
  const owner = ownerOf(resource);
  if (owner === uid) return instanceOf(resource, location);
  const whose = owner === undefined ? 'is not one of ours' : `belongs to another Proxy, with the UID ${owner}`;
  const { project, zone, name } = location;
  throw new ProviderError('Permanent', `the instance ${name} in zone ${zone} of project ${project} ${whose}`);
}
