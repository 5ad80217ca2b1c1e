// Deep imports: the package's entry point loads all of its 120 services, three times (v1, v1beta, v1small). These three
// files take a sixth of the time and half of the memory. The package is pinned to one exact version.
import { AddressesClient } from '@google-cloud/compute/build/src/v1/addresses_client.js';
import { InstancesClient } from '@google-cloud/compute/build/src/v1/instances_client.js';
import { ZoneOperationsClient } from '@google-cloud/compute/build/src/v1/zone_operations_client.js';
import { GoogleAuth } from 'google-auth-library';
import { ApiError, type ComputeApi, type InstancePage, type Location, type Operation } from './compute-api.ts';
import type { GcpConfig } from './config.ts';
import { createWire, type Wire } from './wire.ts';

/** In milliseconds. A look is two reads, by name also a list, and the workflow gives it 60 s. */
const TIMEOUT = { read: 9_000, change: 30_000, page: 30_000 } as const;
const PAGE_SIZE = 500;

/**
 * Compute Engine through Google's generated client, over REST. Its own logging (GOOGLE_SDK_NODE_LOGGING) writes whole
 * requests, and so cloud-init: never set it where that is secret.
 */
export function createGoogleClient({ endpoint, credentials }: Pick<GcpConfig, 'endpoint' | 'credentials'>): ComputeApi {
  const googleAuth = new GoogleAuth({ scopes: 'https://www.googleapis.com/auth/cloud-platform' });
  const wire = createWire(async (url) =>
    credentials === 'none' ? new Headers() : new Headers(await googleAuth.getRequestHeaders(url)),
  );
  const options = { ...clientOptions(wire), ...(endpoint !== undefined && addressOf(new URL(endpoint))) };
  const instances = new InstancesClient(options);
  const operations = new ZoneOperationsClient(options);
  const addresses = new AddressesClient(options);

  return {
    insert: ({ project, zone }, body, requestId, signal) =>
      wire.call(signal, TIMEOUT.change, async () => {
        const request = { project, zone, requestId, instanceResource: body };
        const [accepted] = await instances.insert(request, once(TIMEOUT.change));
        return accepted.latestResponse as Operation;
      }),

    get: (location, signal) =>
      wire.call(signal, TIMEOUT.read, () =>
        unlessMissing(location, async () => (await instances.get(named(location), once(TIMEOUT.read)))[0]),
      ),

    delete: (location, signal) =>
      wire.call(signal, TIMEOUT.change, async () => {
        const remove = async () => Boolean(await instances.delete(named(location), once(TIMEOUT.change)));
        return (await unlessMissing(location, remove)) ?? false;
      }),

    async *list(project, filter, signal) {
      let pageToken: string | undefined;
      do {
        const request = { project, filter, returnPartialSuccess: true, maxResults: PAGE_SIZE, pageToken };
        const page = await wire.call(signal, TIMEOUT.page, async () => {
          // The call below `aggregatedListAsync`, which hides what the answer says of scopes that were not reached.
          await instances.initialize();
          const aggregatedList = instances.innerApiCalls.aggregatedList as AggregatedListCall;
          const [, , answer] = await aggregatedList(request, once(TIMEOUT.page));
          return answer;
        });
        yield pageOf(page);
        pageToken = page.nextPageToken || undefined;
      } while (pageToken);
    },

    async lastInsert({ project, zone, name }, signal) {
      const target = `/zones/${zone}/instances/${name}`;
      const filter = `(operationType=insert) AND (targetLink:${target})`;
      const request = { project, zone, filter, orderBy: 'creationTimestamp desc' };
      return wire.call(signal, TIMEOUT.read, async () => {
        // A page may be empty and yet not be the last.
        for await (const operation of operations.listAsync(request, once(TIMEOUT.read))) {
          if (operation.targetLink?.endsWith(target)) return operation;
        }
        return undefined;
      });
    },

    addresses: (project, region, signal) =>
      wire.call(signal, TIMEOUT.read, () =>
        Array.fromAsync(addresses.listAsync({ project, region }, once(TIMEOUT.read))),
      ),

    async close() {
      await Promise.all([instances.close(), operations.close(), addresses.close()]);
    },
  };
}

/** The workflow waits and tries again, where it can be seen; the client never does. Pages are asked for one by one. */
const once = (timeout: number) => ({ timeout, retry: null, autoPaginate: false });

const named = ({ project, zone, name }: Location) => ({ project, zone, instance: name });

/** `auth` is declared as the whole class, of which the clients call no more than `Wire` has. */
const clientOptions = ({ auth }: Wire) => ({ fallback: true, auth: auth as unknown as GoogleAuth });

function addressOf({ protocol, hostname, port }: URL) {
  const standard = protocol === 'https:' ? 443 : 80;
  return { apiEndpoint: hostname, port: port ? Number(port) : standard, protocol: protocol.slice(0, -1) };
}

/** Undefined for a 404 about this VM. One about the project says nothing of the VM, and stays an error. */
async function unlessMissing<T>({ name }: Location, call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    const [, missing] = /resource '([^']*)' was not found/.exec(error.message) ?? [];
    if (missing !== undefined && !missing.endsWith(`/instances/${name}`)) throw error;
    return undefined;
  }
}

interface Scope {
  instances?: InstancePage['instances'];
  warning?: { code?: string | null } | null;
}

interface AggregatedList {
  items?: Record<string, Scope>;
  nextPageToken?: string | null;
  unreachables?: string[];
}

type AggregatedListCall = (request: object, options: object) => Promise<[unknown, unknown, AggregatedList]>;

/** A scope with any warning but "nothing on this page" is unknown, not empty. */
function pageOf({ items = {}, unreachables = [] }: AggregatedList): InstancePage {
  const scopes = Object.entries(items);
  const warned = scopes.flatMap(([scope, { warning }]) =>
    warning?.code && warning.code !== 'NO_RESULTS_ON_PAGE' ? [scope] : [],
  );
  return {
    instances: scopes.flatMap(([, { instances = [] }]) => instances),
    unreachable: [...new Set([...warned, ...unreachables])],
  };
}
