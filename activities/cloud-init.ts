import { CLOUD_INIT_LABEL, type ManagedSpec } from '../model/proxy.ts';
import type { Kubernetes } from './kubernetes.ts';

/** Why a Proxy's cloud-init can't be had, for people; never holds any of its content. */
export class CloudInitError extends Error {
  override readonly name = 'CloudInitError';
}

/**
 * The text that a machine of this spec is initialised with; undefined when the spec asks for none.
 * @throws CloudInitError when the Secret is missing, lacks the label that makes it visible, or lacks the key.
 */
export async function resolveCloudInit(
  { cloudInit }: ManagedSpec,
  namespace: string,
  kubernetes: Kubernetes,
): Promise<string | undefined> {
  if (!cloudInit) return undefined;
  if ('inline' in cloudInit) return cloudInit.inline;
  const { name, key } = cloudInit.secretRef;
  const secret = await kubernetes.readSecret(namespace, name);
  // An unlabelled Secret is as good as missing: a Proxy must not become a way to read Secrets that were not meant for it.
  if (secret?.metadata?.labels?.[CLOUD_INIT_LABEL] !== 'true') {
    throw new CloudInitError(
      `No Secret "${name}" with the label ${CLOUD_INIT_LABEL}: "true" in namespace ${namespace}`,
    );
  }
  const content = secret.data?.[key];
  if (content === undefined) throw new CloudInitError(`Secret "${name}" in namespace ${namespace} has no key "${key}"`);
  return Buffer.from(content, 'base64').toString('utf8');
}
