import { HealthyReason, ProvisionedReason } from '../../model/condition.ts';
import type { Proxy, ProxySpec, ProxyStatus } from '../../model/proxy.ts';
import type { ProxyView } from '../../model/proxy-view.ts';

export interface ProxyTraits {
  namespace?: string;
  uid?: string;
  attributes?: Record<string, string>;
  maxConcurrent?: number;
  cordoned?: boolean;
  deleting?: boolean;
  healthy?: boolean;
  latencyMillis?: number;
  /** An External proxy at this host, asking for credentials. */
  externalHost?: string;
  /** Null: it has none (yet). */
  ip?: string | null;
}

/** A Proxy that is Ready unless its traits say otherwise. Its UID is `uid-<name>`. */
export function aProxy(name: string, traits: ProxyTraits = {}): Proxy {
  const {
    namespace = 'default',
    uid = `uid-${name}`,
    healthy = true,
    ip = traits.externalHost ?? '192.0.2.1',
  } = traits;
  return {
    apiVersion: 'crawl.example.com/v1alpha1',
    kind: 'Proxy',
    metadata: {
      namespace,
      name,
      uid,
      generation: 1,
      resourceVersion: '1',
      ...(traits.deleting && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    },
    spec: specOf(traits),
    status: { ...(ip !== null && { ip, port: 3128 }), ...statusOf(healthy, traits) },
  };
}

function specOf({ attributes, maxConcurrent, cordoned, externalHost }: ProxyTraits): ProxySpec {
  const common = {
    ...(attributes && { attributes }),
    ...(maxConcurrent !== undefined && { lease: { maxConcurrent } }),
    ...(cordoned && { cordoned }),
  };
  if (externalHost === undefined) return { ...common, provider: 'local' };
  return { ...common, mode: 'External', endpoint: { host: externalHost, credentialsSecretRef: { name: 'login' } } };
}

function statusOf(healthy: boolean, { latencyMillis, externalHost }: ProxyTraits): ProxyStatus {
  const stamp = { message: '', observedGeneration: 1, lastTransitionTime: '2026-01-01T00:00:00Z' };
  return {
    ...(latencyMillis !== undefined && { latencyMillis }),
    conditions: [
      {
        type: 'Provisioned',
        status: 'True',
        reason: externalHost ? ProvisionedReason.ExternalEndpoint : ProvisionedReason.Created,
        ...stamp,
      },
      {
        type: 'Healthy',
        status: healthy ? 'True' : 'False',
        reason: healthy ? HealthyReason.ProbeSucceeded : HealthyReason.ProbeFailed,
        ...stamp,
      },
    ],
  };
}

/** A view that a test changes by hand. */
export interface EditableView extends ProxyView {
  synced: boolean;
  put(...proxies: Proxy[]): void;
  remove(uid: string): void;
}

export function editableView(...proxies: Proxy[]): EditableView {
  const byUid = new Map<string, Proxy>();
  const listeners = new Set<Parameters<ProxyView['subscribe']>[0]>();
  const view: EditableView = {
    synced: true,
    all: () => byUid.values(),
    byUid: (uid) => byUid.get(uid),
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    put(...changed) {
      for (const proxy of changed) {
        byUid.set(proxy.metadata.uid, proxy);
        for (const listener of listeners) listener(proxy, 'changed');
      }
    },
    remove(uid) {
      const proxy = byUid.get(uid);
      byUid.delete(uid);
      if (proxy) for (const listener of listeners) listener(proxy, 'removed');
    },
  };
  view.put(...proxies);
  return view;
}
