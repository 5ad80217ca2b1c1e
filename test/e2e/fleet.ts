import { CoreV1Api, CustomObjectsApi, KubeConfig, PatchStrategy, setHeaderOptions } from '@kubernetes/client-node';
import { conditionOf } from '../../model/condition.ts';
import { GROUP, type Phase, PROXIES, type Proxy, VERSION } from '../../model/proxy.ts';
import { instanceName } from '../../model/spec-hash.ts';
import { type ProxyWatch, watchProxies } from './proxy-watch.ts';

const WAIT_MILLIS = 45_000;
const MERGE = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);
const NAMESPACE = 'default';
const COORDINATES = { group: GROUP, version: VERSION, plural: PROXIES, namespace: NAMESPACE };

export type Matches = (proxy: Proxy) => boolean;

/** The Proxies of namespace `default`, as a client sees and changes them. */
export interface Fleet {
  watch: ProxyWatch;
  core: CoreV1Api;
  create(name: string, spec: object): Promise<Proxy>;
  /** Merges into the spec. */
  edit(name: string, spec: object): Promise<Proxy>;
  /** Returns at once; see `gone`. */
  remove(name: string): Promise<void>;
  /** Waits for a version that matches, the current one included. Rejects with the status that it was left with. */
  until(name: string, matches: Matches): Promise<Proxy>;
  gone(name: string): Promise<void>;
  putSecret(name: string, data: Record<string, string>, labels?: Record<string, string>): Promise<void>;
  close(): Promise<void>;
}

export async function openFleet(kubeconfig: string): Promise<Fleet> {
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromFile(kubeconfig);
  const objects = kubeConfig.makeApiClient(CustomObjectsApi);
  const core = kubeConfig.makeApiClient(CoreV1Api);
  const watch = await watchProxies(kubeConfig);

  async function wait<T>(what: string, name: string, look: () => T | undefined): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const check = () => {
      const found = look();
      if (found !== undefined) resolve(found);
    };
    const late = setTimeout(() => {
      const last = watch.current(name);
      reject(new Error(`${name} did not become ${what}; it is left with ${JSON.stringify(last?.status ?? last)}`));
    }, WAIT_MILLIS);
    const unsubscribe = watch.subscribe(check);
    check();
    try {
      return await promise;
    } finally {
      clearTimeout(late);
      unsubscribe();
    }
  }

  return {
    watch,
    core,
    create(name, spec) {
      const body = { apiVersion: `${GROUP}/${VERSION}`, kind: 'Proxy', metadata: { name }, spec };
      return objects.createNamespacedCustomObject({ ...COORDINATES, body });
    },
    edit: (name, spec) => objects.patchNamespacedCustomObject({ ...COORDINATES, name, body: { spec } }, MERGE),
    async remove(name) {
      await objects.deleteNamespacedCustomObject({ ...COORDINATES, name });
    },
    until(name, matches) {
      return wait(`as expected (${matches})`, name, () => {
        const proxy = watch.current(name);
        return proxy && matches(proxy) ? proxy : undefined;
      });
    },
    async gone(name) {
      await wait('gone', name, () => (watch.current(name) ? undefined : true));
    },
    async putSecret(name, stringData, labels = {}) {
      const body = { metadata: { name, labels }, stringData };
      const absent = { code: 404 };
      const patched = await core
        .patchNamespacedSecret({ name, namespace: NAMESPACE, body }, MERGE)
        .catch((error: { code?: number }) => {
          if (error.code !== absent.code) throw error;
        });
      if (!patched) await core.createNamespacedSecret({ namespace: NAMESPACE, body });
    },
    close: () => watch.stop(),
  };
}

/** Ready, and that is said of this spec or a later one. */
export const readyAt =
  ({ metadata: { generation, uid } }: Proxy): Matches =>
  ({ metadata, status }) =>
    metadata.uid === uid && status?.phase === 'Ready' && (status.observedGeneration ?? 0) >= generation;

export const inPhase =
  (phase: Phase): Matches =>
  ({ status }) =>
    status?.phase === phase;

export const provisionedReason = ({ status }: Proxy): string | undefined =>
  conditionOf(status?.conditions, 'Provisioned')?.reason;

export const instanceOf = ({ metadata: { uid } }: Proxy): string => instanceName(uid);

/** Probed every second and judged at once, so that a test need not wait for a verdict. */
export const PROBED_OFTEN = { intervalSeconds: 1, timeoutSeconds: 1, failureThreshold: 1 };
