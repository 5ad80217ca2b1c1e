import {
  ApiException,
  type ConfigurationOptions,
  CoreV1Api,
  CustomObjectsApi,
  type KubeConfig,
  Observable,
  PatchStrategy,
  type V1Secret,
} from '@kubernetes/client-node';
import { PROVIDER_HEALTHS, type ProviderHealth, type ProviderHealthStatus } from '../model/provider-health.ts';
import { GROUP, PROXIES, type Proxy, type ProxyRef, VERSION } from '../model/proxy.ts';

/** A call that hangs on a half-open connection must end well before its activity's own timeout. */
const REQUEST_TIMEOUT_MILLIS = 5_000;

export interface KubernetesEvent {
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
}

/** The few calls that activities make to the API server. A missing object is `undefined`, every other failure throws. */
export interface Kubernetes {
  /** The Proxy, if it is still the one with this UID. */
  readProxy(ref: ProxyRef): Promise<Proxy | undefined>;
  /** Merge patch; with `resourceVersion` in its metadata the server refuses a stale one (see `isConflict`). */
  patchProxy(ref: ProxyRef, patch: object): Promise<Proxy | undefined>;
  patchProxyStatus(ref: ProxyRef, patch: object): Promise<Proxy | undefined>;
  readSecret(namespace: string, name: string): Promise<V1Secret | undefined>;
  createEvent(ref: ProxyRef, event: KubernetesEvent): Promise<void>;
  /** All Proxies of the namespace, or of all namespaces, straight from the server, page by page. */
  listProxies(namespace: string | undefined): Promise<AllProxies>;
  readProviderHealth(name: string): Promise<ProviderHealth | undefined>;
  /** Makes the object where there is none. */
  writeProviderHealth(name: string, status: ProviderHealthStatus): Promise<void>;
}

/** Proxies as one read found them; `complete` is false when a page is missing. */
export interface AllProxies {
  proxies: Proxy[];
  complete: boolean;
}

const PAGE_SIZE = 500;
const HEALTHS = { group: GROUP, version: VERSION, plural: PROVIDER_HEALTHS };

interface ProxyPage {
  items: Proxy[];
  metadata: { continue?: string };
}

export const isConflict = (error: unknown): boolean => error instanceof ApiException && error.code === 409;

export function createKubernetes(kubeConfig: KubeConfig): Kubernetes {
  const objects = kubeConfig.makeApiClient(CustomObjectsApi);
  const core = kubeConfig.makeApiClient(CoreV1Api);
  const address = ({ namespace, name }: ProxyRef) => ({
    group: GROUP,
    version: VERSION,
    plural: PROXIES,
    namespace,
    name,
  });

  async function pageOfProxies(namespace: string | undefined, next: string | undefined): Promise<ProxyPage> {
    const query = {
      group: GROUP,
      version: VERSION,
      plural: PROXIES,
      limit: PAGE_SIZE,
      ...(next && { _continue: next }),
    };
    return namespace
      ? await objects.listNamespacedCustomObject({ ...query, namespace }, requestOptions())
      : await objects.listClusterCustomObject(query, requestOptions());
  }

  return {
    async readProxy(ref) {
      const proxy = (await orMissing(objects.getNamespacedCustomObject(address(ref), requestOptions()))) as
        | Proxy
        | undefined;
      return proxy?.metadata.uid === ref.uid ? proxy : undefined;
    },
    patchProxy: (ref, patch) =>
      orMissing(
        objects.patchNamespacedCustomObject({ ...address(ref), body: patch }, requestOptions(PatchStrategy.MergePatch)),
      ),
    patchProxyStatus: (ref, patch) =>
      orMissing(
        objects.patchNamespacedCustomObjectStatus(
          { ...address(ref), body: patch },
          requestOptions(PatchStrategy.MergePatch),
        ),
      ),
    readSecret: (namespace, name) => orMissing(core.readNamespacedSecret({ namespace, name }, requestOptions())),
    async createEvent({ namespace, name, uid }, { type, reason, message }) {
      const now = new Date();
      const involvedObject = { apiVersion: `${GROUP}/${VERSION}`, kind: 'Proxy', namespace, name, uid };
      const body = {
        metadata: { generateName: `${name}.`, namespace },
        involvedObject,
        type,
        reason,
        message,
        source: { component: 'egress-proxy-orchestrator' },
        firstTimestamp: now,
        lastTimestamp: now,
        count: 1,
      };
      await core.createNamespacedEvent({ namespace, body }, requestOptions());
    },
    async listProxies(namespace) {
      const proxies: Proxy[] = [];
      let next: string | undefined;
      do {
        const page = await pageOfProxies(namespace, next).catch((error: unknown) => {
          // Without its first page a list is no list; later on, what is there may be worth something to the caller.
          if (next === undefined) throw readable(error);
        });
        if (!page) return { proxies, complete: false };
        proxies.push(...page.items);
        next = page.metadata.continue || undefined;
      } while (next !== undefined);
      return { proxies, complete: true };
    },
    readProviderHealth: (name) => orMissing(objects.getClusterCustomObject({ ...HEALTHS, name }, requestOptions())),
    async writeProviderHealth(name, status) {
      const patch = () =>
        orMissing(
          objects.patchClusterCustomObjectStatus(
            { ...HEALTHS, name, body: { status } },
            requestOptions(PatchStrategy.MergePatch),
          ),
        );
      if (await patch()) return;
      const body = { apiVersion: `${GROUP}/${VERSION}`, kind: 'ProviderHealth', metadata: { name } };
      await objects.createClusterCustomObject({ ...HEALTHS, body }, requestOptions());
      await patch();
    },
  };
}

function requestOptions(contentType?: string): ConfigurationOptions {
  return {
    middlewareMergeStrategy: 'append',
    middleware: [
      {
        pre(context) {
          if (contentType) context.setHeaderParam('Content-Type', contentType);
          context.setSignal(AbortSignal.timeout(REQUEST_TIMEOUT_MILLIS));
          return new Observable(Promise.resolve(context));
        },
        post: (response) => new Observable(Promise.resolve(response)),
      },
    ],
  };
}

async function orMissing<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ApiException && error.code === 404) return undefined;
    throw readable(error);
  }
}

/** The client's own errors carry the whole response, headers and all; people need the server's one sentence. */
function readable(error: unknown): unknown {
  if (!(error instanceof ApiException)) return error;
  const body: unknown = typeof error.body === 'string' ? safeParse(error.body) : error.body;
  const said = (body as { message?: unknown } | undefined)?.message;
  if (typeof said === 'string') error.message = `Kubernetes API answered ${error.code}: ${said}`;
  return error;
}

function safeParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
