import type { KubeConfig } from '@kubernetes/client-node';
import { ProviderError } from '../../../model/instance.ts';
import type { KubernetesConfig } from './config.ts';
import { KeptConnections } from './kept-connections.ts';

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
  if (!kubeConfig.getCurrentCluster()) throw refuse('its kubeconfig names no cluster');
  return kubeConfig;
}
