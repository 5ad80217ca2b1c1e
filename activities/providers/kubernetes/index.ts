export { type KubernetesConfig, kubernetesConfig } from './config.ts';
export { createKubernetesProvider, type KubernetesProviderDeps } from './provider.ts';
