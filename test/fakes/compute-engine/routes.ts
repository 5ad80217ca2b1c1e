import { ErrorAnswer, notFound } from './api-error.ts';
import type { Call, FaultEffect } from './faults.ts';
import { parseFilter } from './filter.ts';
import { pageOf } from './paging.ts';
import type { Project } from './project.ts';
import { urlOf, ZONES } from './resources.ts';
import type { Settings } from './settings.ts';

/** A request, taken apart. */
export interface ApiRequest {
  call: Call;
  zone?: string;
  region?: string;
  /** Of the VM or operation. */
  name?: string;
  query: URLSearchParams;
  body: unknown;
}

const PATHS: [method: string, path: RegExp, call: Call][] = [
  ['POST', /^zones\/(?<zone>[^/]+)\/instances$/, 'instances.insert'],
  ['GET', /^zones\/(?<zone>[^/]+)\/instances\/(?<name>[^/]+)$/, 'instances.get'],
  ['DELETE', /^zones\/(?<zone>[^/]+)\/instances\/(?<name>[^/]+)$/, 'instances.delete'],
  ['GET', /^aggregated\/instances$/, 'instances.aggregatedList'],
  ['GET', /^zones\/(?<zone>[^/]+)\/operations\/(?<name>[^/]+)$/, 'zoneOperations.get'],
  ['GET', /^zones\/(?<zone>[^/]+)\/operations$/, 'zoneOperations.list'],
  ['GET', /^regions\/(?<region>[^/]+)\/addresses$/, 'addresses.list'],
];

/** Which call a request is; undefined for a path that this server does not know. */
export function routeOf(
  method: string,
  path: string,
): Pick<ApiRequest, 'call' | 'zone' | 'region' | 'name'> | undefined {
  for (const [verb, pattern, call] of PATHS) {
    const match = verb === method ? pattern.exec(path) : null;
    if (match) return { call, ...match.groups };
  }
  return undefined;
}

/** Does what the call does, and returns its JSON. Throws `ErrorAnswer`. */
export function answer(request: ApiRequest, project: Project, settings: Settings, effect?: FaultEffect): object {
  const { zone = '', region = '', name = '', query, body } = request;
  const requestId = query.get('requestId');
  const failure = effect?.kind === 'operationError' ? effect : undefined;
  switch (request.call) {
    case 'instances.insert':
      return project.insert(zone, body as never, requestId, failure);
    case 'instances.get':
      return project.get(zone, name).resource;
    case 'instances.delete':
      return project.delete(zone, name, requestId, failure);
    case 'instances.aggregatedList':
      return aggregatedList(project, settings, query);
    case 'zoneOperations.get': {
      project.checkZone(zone);
      const operation = project.operations.in(zone).find((one) => one.name === name || one.id === name);
      if (operation) return operation;
      throw notFound(`projects/${project.id}/zones/${zone}/operations/${name}`);
    }
    case 'zoneOperations.list':
      return listOperations(project, settings, zone, query);
    case 'addresses.list':
      return { kind: 'compute#addressList', items: project.machines.addresses(region) };
  }
}

/** Every zone is on every page; one without results has the warning NO_RESULTS_ON_PAGE, and so for one that is unknown. */
function aggregatedList(project: Project, { pageSize, unreachableZones }: Settings, query: URLSearchParams): object {
  if (unreachableZones.length > 0 && query.get('returnPartialSuccess') !== 'true') {
    throw new ErrorAnswer(503, 'backendError', `Zones did not answer: ${unreachableZones.join(', ')}`);
  }
  const matches = parseFilter(query.get('filter'));
  const found = project.machines
    .listed()
    .filter(({ zone, resource }) => !unreachableZones.includes(zone) && matches(resource));
  const { items, nextPageToken } = pageOf(found, query, pageSize);
  const scopes = ZONES.map((zone) => {
    const instances = items.filter((one) => one.zone === zone).map(({ resource }) => resource);
    const scope = instances.length > 0 ? { instances } : { warning: warningOf(zone, unreachableZones) };
    return [`zones/${zone}`, scope];
  });
  return {
    kind: 'compute#instanceAggregatedList',
    id: `projects/${project.id}/aggregated/instances`,
    items: Object.fromEntries(scopes),
    selfLink: urlOf(project.id, 'aggregated/instances'),
    ...(unreachableZones.length > 0 && { unreachables: unreachableZones.map((zone) => `zones/${zone}`) }),
    ...(nextPageToken && { nextPageToken }),
  };
}

function warningOf(zone: string, unreachableZones: string[]): object {
  const unreachable = unreachableZones.includes(zone);
  return {
    code: unreachable ? 'UNREACHABLE' : 'NO_RESULTS_ON_PAGE',
    message: unreachable
      ? `Zone ${zone} did not answer.`
      : `There are no results for scope 'zones/${zone}' on this page.`,
    data: [{ key: 'scope', value: `zones/${zone}` }],
  };
}

function listOperations(project: Project, { pageSize }: Settings, zone: string, query: URLSearchParams): object {
  project.checkZone(zone);
  const found = project.operations.in(zone).filter(parseFilter(query.get('filter')));
  const order = query.get('orderBy');
  if (order !== null && order !== 'creationTimestamp desc') throw new ErrorAnswer(400, 'invalid', `orderBy ${order}`);
  const { items, nextPageToken } = pageOf(order ? found.reverse() : found, query, pageSize);
  return { kind: 'compute#operationList', items, ...(nextPageToken && { nextPageToken }) };
}
