import type { KubeConfig } from '@kubernetes/client-node';
import { ProviderError } from '../../../model/instance.ts';
import type { KubernetesConfig } from './config.ts';
import { KeptConnections } from './kept-connections.ts';

/** What the client falls back to when it finds no credentials, and then refuses to talk to. */
const LAST_RESORT = 'http://localhost:8080';

/**
 * The credentials that the configuration names. Says nothing of whether the cluster answers: a worker must start also
 * while one of its clusters is down.
 * @throws ProviderError, Permanent, if there are none, or no such context.
 */
export function clusterOf({ name, kubeconfig, context }: KubernetesConfig): KubeConfig {
  const kubeConfig = new KeptConnections();
  const refuse = (why: string) => new ProviderError('Permanent', `the kubernetes provider ${name}: ${why}`);
  try {
    if (kubeconfig) kubeConfig.loadFromFile(kubeconfig);
    else kubeConfig.loadFromDefault();
  } catch (error) {
    throw refuse(`can't read its kubeconfig ${kubeconfig ?? ''}: ${(error as Error).message}`);
  }
  const contexts = kubeConfig.getContexts().map((known) => known.name);
  if (context && !contexts.includes(context))
    throw refuse(`its kubeconfig has no context "${context}"; it has ${contexts.join(', ')}`);
  if (context) kubeConfig.setCurrentContext(context);
  const cluster = kubeConfig.getCurrentCluster();
  if (!cluster) throw refuse('its kubeconfig names no cluster');
  if (cluster.server === LAST_RESORT && !cluster.skipTLSVerify)
    throw refuse(
      'found no cluster: KUBECONFIG is not set, and there is neither ~/.kube/config nor the service account of a pod; name a kubeconfig',
    );
  return kubeConfig;
}
