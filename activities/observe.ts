import type { Observation, ObservedManaged, ObservedProvider, ObservedProxy, Timing } from '../model/observation.ts';
import {
  ABANDON_ANNOTATION,
  FINALIZER,
  HASH_ANNOTATION,
  isExternal,
  type ManagedSpec,
  type Proxy,
  type ProxyRef,
  portOf,
} from '../model/proxy.ts';
import { instanceName, specHash } from '../model/spec-hash.ts';
import { CloudInitError, resolveCloudInit } from './cloud-init.ts';
import type { Kubernetes } from './kubernetes.ts';

export interface ObserveDeps {
  kubernetes: Kubernetes;
  timing: Timing;
  /** How a provider's name is routed, from the configuration alone. */
  route(provider: string): ObservedProvider;
}

export function createObserve({ kubernetes, timing, route }: ObserveDeps) {
  async function managed(
    proxy: Proxy,
    spec: ManagedSpec,
  ): Promise<Omit<ObservedManaged, keyof ReturnType<typeof common>>> {
    const name = instanceName(proxy.metadata.uid);
    const recordedHash = proxy.metadata.annotations?.[HASH_ANNOTATION];
    return {
      mode: 'Managed',
      instanceName: name,
      abandon: proxy.metadata.annotations?.[ABANDON_ANNOTATION] === name,
      placement: spec.placement ?? {},
      provider: route(spec.provider),
      ...(recordedHash !== undefined && { recordedHash }),
      desired: await desired(spec, proxy.metadata.namespace),
    };
  }

  async function desired(spec: ManagedSpec, namespace: string): Promise<ObservedManaged['desired']> {
    try {
      return { hash: specHash(spec, await resolveCloudInit(spec, namespace, kubernetes)) };
    } catch (error) {
      if (error instanceof CloudInitError) return { cloudInitError: error.message };
      throw error;
    }
  }

  /** What a pass starts from: the CR as the API server has it now, not as a cache remembers it. */
  return async function observe(ref: ProxyRef): Promise<Observation> {
    const proxy = await kubernetes.readProxy(ref);
    if (!proxy) return { timing };
    const { spec } = proxy;
    const seen: ObservedProxy = isExternal(spec)
      ? { ...common(proxy), mode: 'External', host: spec.endpoint.host }
      : { ...common(proxy), ...(await managed(proxy, spec)) };
    return { proxy: seen, timing };
  };
}

function common({ metadata, spec, status }: Proxy) {
  return {
    generation: metadata.generation,
    deleting: metadata.deletionTimestamp !== undefined,
    finalizer: metadata.finalizers?.includes(FINALIZER) ?? false,
    port: portOf(spec),
    status: status ?? {},
  };
}
