import { setTimeout as sleep } from 'node:timers/promises';
import { ApiException, CustomObjectsApi, type KubeConfig } from '@kubernetes/client-node';
import { KeptConnections } from '../activities/providers/kubernetes/kept-connections.ts';
import { GROUP, PROXIES, VERSION } from '../model/proxy.ts';
import { StartError } from './start-error.ts';

const ANSWER_MILLIS = 10_000;
const BUSY_TRIES = 20;
const BUSY_MILLIS = 250;

/** Credentials as kubectl finds them: KUBECONFIG, the user's file, or the pod's service account. */
export async function connectKubernetes(namespace: string): Promise<KubeConfig> {
  const kubeConfig = new KeptConnections();
  try {
    kubeConfig.loadFromDefault();
  } catch (error) {
    throw new StartError(`Can't read the kubeconfig ${process.env.KUBECONFIG ?? ''}: ${(error as Error).message}`);
  }
  const server = kubeConfig.getCurrentCluster()?.server;
  if (!server) throw new StartError('The kubeconfig names no cluster; point KUBECONFIG at one that does');
  await probeServer(kubeConfig, server, namespace);
  return kubeConfig;
}

/** Lists one Proxy: proves address, token, RBAC and CRD in one go. */
async function probeServer(kubeConfig: KubeConfig, server: string, namespace: string): Promise<void> {
  const api = kubeConfig.makeApiClient(CustomObjectsApi);
  const query = { group: GROUP, version: VERSION, plural: PROXIES, limit: 1 };
  const late = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error(`no answer within ${ANSWER_MILLIS / 1000} s`)), ANSWER_MILLIS).unref();
  });
  const list = () =>
    namespace ? api.listNamespacedCustomObject({ ...query, namespace }) : api.listClusterCustomObject(query);
  for (let tries = 1; ; tries += 1) {
    try {
      await Promise.race([list(), late]);
      return;
    } catch (error) {
      // A server that is still starting, or has just been given the CRD, says so: it is there, and soon answers.
      const busy = error instanceof ApiException && (error.code === 429 || error.code === 503);
      if (!busy || tries === BUSY_TRIES) throw new StartError(explain(error, server));
      await sleep(BUSY_MILLIS);
    }
  }
}

function explain(error: unknown, server: string): string {
  if (!(error instanceof ApiException)) {
    const { message, cause } = error as Error;
    return `Can't reach the Kubernetes API at ${server}: ${cause instanceof Error ? cause.message : message}`;
  }
  switch (error.code) {
    case 401:
      return `The Kubernetes API at ${server} does not accept the credentials of the kubeconfig (401)`;
    case 403:
      return `The credentials for the Kubernetes API at ${server} may not list Proxies (403); grant them the permissions of this project's RBAC`;
    case 404:
      return `The Kubernetes API at ${server} does not know Proxies; run: kubectl apply --server-side -f deploy/crds`;
    default:
      return `The Kubernetes API at ${server} answered ${error.code} to a list of Proxies`;
  }
}
