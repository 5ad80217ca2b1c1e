import { type Instance, type InstanceRequest, ProviderError } from '../../../model/instance.ts';
import { ApiError, type ComputeApi, type Location } from './compute-api.ts';
import type { GcpConfig } from './config.ts';
import { insertFailure, outcomeOf, promised } from './insert-operation.ts';
import { instanceResource, type ResolvedPlacement, regionOf, resolvePlacement } from './instance-resource.ts';
import type { Recent } from './recent.ts';
import { requestIdFor } from './request-id.ts';
import { ours, type Sighting, type Sightings } from './sightings.ts';
import { freeAddress } from './static-address.ts';

export interface CreateDeps {
  api: ComputeApi;
  config: GcpConfig;
  sightings: Sightings;
  recent: Recent;
}

/** Asks for the VM, or finds the one that is there. What is returned is promised, not yet made. */
export async function createInstance(
  { api, config, sightings, recent }: CreateDeps,
  request: InstanceRequest,
  signal: AbortSignal,
): Promise<Instance> {
  const placement = resolvePlacement(request, config);
  const { name, uid, specHash } = request;
  const location = { project: config.projectId, zone: placement.zone, name };

  if (request.mayExist) {
    const existing = asInstance(await sightings.find({ name, uid, placement }, signal), request);
    if (existing) return existing;
  }
  try {
    const body = instanceResource(request, placement, config, await staticAddress(placement, location));
    const insert = await api.insert(location, body, requestIdFor(specHash), signal);
    if (outcomeOf(insert) === 'failed') throw insertFailure(insert, `${name} in zone ${placement.zone}`);
    recent.forget(location);
    return promised(insert, location, request);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // Of an insert, a 404 says that something it refers to is missing: an image, a network, the project.
    if (error.status === 404) throw new ApiError(400, error.message, error.reasons, error.retryAfterMillis);
    if (error.status !== 409) throw error;
    const existing = asInstance(await sightings.at(location, signal), request);
    if (existing) return existing;
    throw new ProviderError(
      'Transient',
      `the name ${name} is taken in zone ${placement.zone}, by what can't be seen yet`,
    );
  }

  async function staticAddress({ zone }: ResolvedPlacement, { project }: Location): Promise<string | undefined> {
    if (typeof config.externalAddress === 'string') return undefined;
    const region = regionOf(zone);
    const reserved = await api.addresses(project, region, signal);
    return freeAddress(reserved, config.externalAddress.static, name, region);
  }
}

/** @throws ProviderError, Permanent, for a stranger's VM. */
function asInstance(sighting: Sighting | undefined, request: InstanceRequest): Instance | undefined {
  if (!sighting) return undefined;
  if ('resource' in sighting) return ours(sighting, request.uid);
  const { insert, location } = sighting;
  return outcomeOf(insert) === 'pending' ? promised(insert, location, request) : undefined;
}
