import type { V1ObjectMeta, V1Pod } from '@kubernetes/client-node';
import { type InstanceRequest, UID_LABEL } from '../../../model/instance.ts';

const PROVIDER_LABEL = 'proxy-operator-provider';
/** Annotations, since neither the text of a hash nor the name of a Proxy need be legal as a label. */
const SPEC_HASH_ANNOTATION = 'proxy-operator-spec-hash';
const PROXY_ANNOTATION = 'proxy-operator-proxy';

/** What makes a pod ours, and says what it was made from. Its creation time is the API server's own. */
export function ownershipOf(
  request: InstanceRequest,
  provider: string,
): Required<Pick<V1ObjectMeta, 'labels' | 'annotations'>> {
  return {
    labels: {
      [UID_LABEL]: request.uid,
      [PROVIDER_LABEL]: provider,
      'app.kubernetes.io/name': 'egress-proxy',
      'app.kubernetes.io/managed-by': 'egress-proxy-orchestrator',
    },
    annotations: {
      [SPEC_HASH_ANNOTATION]: request.specHash,
      [PROXY_ANNOTATION]: `${request.namespace}/${request.proxyName}`,
    },
  };
}

/** UID of the Proxy that the pod was made for; undefined if it is no pod of ours. */
export const ownerOf = ({ metadata }: V1Pod): string | undefined => metadata?.labels?.[UID_LABEL];

/** Empty if somebody took the annotation away: equal to no hash, so that the pod is replaced. */
export const specHashOf = ({ metadata }: V1Pod): string => metadata?.annotations?.[SPEC_HASH_ANNOTATION] ?? '';

/** Label selector: all pods of one provider instance. */
export const ownedBy = (provider: string): string => `${UID_LABEL},${PROVIDER_LABEL}=${provider}`;
