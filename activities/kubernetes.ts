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
