import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CoreV1Api, KubeConfig, PatchStrategy, setHeaderOptions } from '@kubernetes/client-node';
import { afterAll, beforeAll } from 'vitest';
import {
  createKubernetesProvider,
  type KubernetesProviderDeps,
  kubernetesConfig,
} from '../../../activities/providers/kubernetes/index.ts';
import { createPodsApi, type PodsApi } from '../../../activities/providers/kubernetes/pods-api.ts';
import { startApiServer } from '../../../deploy/sandbox/api-server.ts';
import { startEtcd } from '../../../deploy/sandbox/etcd.ts';
import { obtainParts } from '../../../deploy/sandbox/parts.ts';

/** A real API server, without a node, and with a namespace of each test's own. */
export interface Cluster {
  core: CoreV1Api;
  kubeconfig: string;
  /** What the provider asks, for tests that put something in between. */
  pods: PodsApi;
  /** An empty namespace. */
  namespace(): Promise<string>;
  provider(
    namespace: string,
    overrides?: Record<string, unknown>,
    deps?: KubernetesProviderDeps,
  ): ReturnType<typeof createKubernetesProvider>;
  /** Merges into a pod's status, as a kubelet does. */
  patchStatus(namespace: string, name: string, status: object): Promise<void>;
  /** Puts a pod on a node, as the scheduler does; the node need not exist. */
  bind(namespace: string, name: string): Promise<void>;
}

/** Starts the API server before the tests of the file that calls this, and stops it after them. */
export function clusterOfThisFile(): () => Cluster {
  const stack = new AsyncDisposableStack();
  let cluster: Cluster | undefined;
  beforeAll(async () => {
    const parts = await obtainParts({ only: ['etcd', 'kube-apiserver'] });
    const dir = mkdtempSync(join(tmpdir(), 'kubernetes-provider-'));
    stack.defer(() => rmSync(dir, { recursive: true, force: true }));
    const etcd = await startEtcd({ binary: parts.etcd, dir: join(dir, 'etcd') });
    stack.defer(() => etcd.stop());
    const api = await startApiServer({ binary: parts['kube-apiserver'], dir: join(dir, 'api'), etcdUrl: etcd.url });
    stack.defer(() => api.stop());
    cluster = clusterAt(api.kubeconfig);
  });
  afterAll(() => stack.disposeAsync());
  return () => {
    if (!cluster) throw new Error('The API server is not up');
    return cluster;
  };
}

function clusterAt(kubeconfig: string): Cluster {
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromFile(kubeconfig);
  const core = kubeConfig.makeApiClient(CoreV1Api);
  let namespaces = 0;
  return {
    core,
    kubeconfig,
    pods: createPodsApi(kubeConfig),
    async namespace() {
      namespaces += 1;
      const name = `test-${namespaces}`;
      await core.createNamespace({ body: { metadata: { name } } });
      return name;
    },
    provider(namespace, overrides = {}, deps = {}) {
      const given = { name: 'pods', type: 'kubernetes', namespace, kubeconfig, clients: ['10.0.0.0/8'] };
      return createKubernetesProvider(kubernetesConfig.parse({ ...given, ...overrides }), deps);
    },
    async patchStatus(namespace, name, status) {
      await core.patchNamespacedPodStatus(
        { namespace, name, body: { status } },
        setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
      );
    },
    async bind(namespace, name) {
      const target = { apiVersion: 'v1', kind: 'Node', name: 'node-1' };
      await core.createNamespacedPodBinding({ namespace, name, body: { metadata: { name }, target } });
    },
  };
}
