import type { V1Pod } from '@kubernetes/client-node';
import { type Instance, type InstanceRef, ProviderError } from '../../../model/instance.ts';
import type { Provider } from '../contract.ts';
import { clusterOf } from './cluster.ts';
import type { KubernetesConfig } from './config.ts';
import { missingKind, providerError, refusalOf } from './errors.ts';
import { listPods } from './list.ts';
import { ownedBy, ownerOf, specHashOf } from './ownership.ts';
import { podOf } from './pod.ts';
import { podStateOf } from './pod-state.ts';
import { createPodsApi, type PodsApi } from './pods-api.ts';
import { formatProviderID, type PodLocation, parseProviderID } from './provider-id.ts';

const PAGE_SIZE = 500;

export interface KubernetesProviderDeps {
  /** Without, the cluster that the configuration names. */
  pods?: PodsApi;
  /** How many pods a page of a list has. */
  pageSize?: number;
  now?: () => number;
}

/**
 * The `kubernetes` provider: an instance is a Squid pod.
 *
 * - One call makes a pod and one deletes it; the API server is asked each time, and nothing is remembered here.
 * - Pods are deleted with their grace period and never by force: while a node is lost its pod may still run, and a second
 *   one under its name would be a second instance.
 * - Of the placement, `zone` chooses nodes by their label `topology.kubernetes.io/zone`. The rest takes part in the spec
 *   hash, and nothing else comes of it: what image runs, and under which labels, is for the configuration to say, and not
 *   for everybody who may make a Proxy.
 * - Cloud-init is not run, as there is no machine of one's own to initialise.
 *
 * Throws a Permanent `ProviderError` if the configuration names no cluster.
 */
export function createKubernetesProvider(config: KubernetesConfig, deps: KubernetesProviderDeps = {}): Provider {
  const { pods = createPodsApi(clusterOf(config)), pageSize = PAGE_SIZE, now = Date.now } = deps;

  const locate = ({ name, providerID }: InstanceRef): PodLocation =>
    (providerID && parseProviderID(providerID)) || { namespace: config.namespace, name };

  async function read(location: PodLocation, signal: AbortSignal): Promise<V1Pod | undefined> {
    try {
      return await pods.read(location, signal);
    } catch (error) {
      if (missingKind(error) === 'pods') return undefined;
      throw error;
    }
  }

  function instanceOf(pod: V1Pod): Instance {
    const { name = '', namespace = config.namespace, creationTimestamp } = pod.metadata ?? {};
    const ip = pod.status?.podIP;
    return {
      name,
      providerID: formatProviderID(config.name, { namespace, name }),
      uid: ownerOf(pod) ?? '',
      ...podStateOf(pod, now()),
      ...(ip && { ip }),
      createdAt: new Date(creationTimestamp ?? 0).toISOString(),
      specHash: specHashOf(pod),
    };
  }

  function ours(pod: V1Pod, { namespace, name }: PodLocation, uid: string): Instance {
    const owner = ownerOf(pod);
    if (owner === uid) return instanceOf(pod);
    const whose = owner ? `belongs to another Proxy, with the UID ${owner}` : 'is not one of ours';
    throw new ProviderError('Permanent', `the pod ${namespace}/${name} ${whose}`);
  }

  return {
    create: (request, signal) =>
      classified(`make the pod ${request.name}`, signal, async () => {
        const location = { namespace: config.namespace, name: request.name };
        try {
          return instanceOf(await pods.create(podOf(request, config), signal));
        } catch (error) {
          if (missingKind(error) === 'namespaces') throw noNamespace(config.namespace);
          if (refusalOf(error)?.reason !== 'AlreadyExists') throw error;
        }
        const existing = await read(location, signal);
        if (existing) return ours(existing, location, request.uid);
        throw new ProviderError('Transient', `the pod that had the name ${request.name} has just gone`);
      }),

    get: (ref, signal) =>
      classified(`show the pod ${ref.name}`, signal, async () => {
        const location = locate(ref);
        const pod = await read(location, signal);
        if (pod) return ours(pod, location, ref.uid);
        throw new ProviderError('NotFound', `there is no pod ${location.namespace}/${location.name}`);
      }),

    delete: (ref, signal) =>
      classified(`delete the pod ${ref.name}`, signal, async () => {
        const location = locate(ref);
        const pod = await read(location, signal);
        if (!pod || ownerOf(pod) !== ref.uid) return 'gone';
        // Asked for already; only its node can make it go now.
        if (pod.metadata?.deletionTimestamp) return 'deleting';
        try {
          await pods.delete(location, pod.metadata?.uid ?? '', signal);
        } catch (error) {
          if (missingKind(error) !== 'pods') throw error;
          return 'gone';
        }
        return 'deleting';
      }),

    list: (signal) =>
      classified('list pods', signal, async () => {
        const query = { namespace: config.namespace, labelSelector: ownedBy(config.name), limit: pageSize };
        return { instances: (await listPods(pods, query, signal)).map(instanceOf), unreachable: [] };
      }),

    async close() {},
  };
}

const noNamespace = (namespace: string): ProviderError =>
  new ProviderError(
    'Permanent',
    `there is no namespace "${namespace}" in the cluster of the pods: create it, then edit or replace the Proxy`,
  );

/** @param attempt what the API server is to do, for people */
async function classified<T>(attempt: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw providerError(error, attempt, signal);
  }
}
