/** Where a pod is. */
export interface PodLocation {
  namespace: string;
  name: string;
}

/** `kubernetes://provider/namespace/pod`: finds the pod also when the configuration names another namespace by now. */
export const formatProviderID = (provider: string, { namespace, name }: PodLocation): string =>
  `kubernetes://${provider}/${namespace}/${name}`;

/** Undefined if it is not one of ours. */
export function parseProviderID(providerID: string): PodLocation | undefined {
  const [, namespace, name] = /^kubernetes:\/\/[-a-z0-9]+\/([-a-z0-9]+)\/([-a-z0-9.]+)$/.exec(providerID) ?? [];
  return namespace && name ? { namespace, name } : undefined;
}
