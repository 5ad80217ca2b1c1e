import { type InstanceRequest, UID_LABEL } from '../../../model/instance.ts';
import type { InstanceResource } from './compute-api.ts';

/** Labels of ours begin with it; nobody else's may. */
export const RESERVED_LABEL_PREFIX = 'proxy-operator-';

const PROVIDER_LABEL = `${RESERVED_LABEL_PREFIX}provider`;
const SPEC_HASH_LABEL = `${RESERVED_LABEL_PREFIX}spec-hash`;
const NAMESPACE_LABEL = `${RESERVED_LABEL_PREFIX}namespace`;
/** Metadata, since the name of a Proxy may be longer than a label, and have dots. */
export const PROXY_METADATA = `${RESERVED_LABEL_PREFIX}proxy`;

/** What makes a VM ours, and says what it was made from. All of it is legal as labels: UIDs, hashes, DNS labels. */
export function ownershipLabels(request: InstanceRequest, provider: string): Record<string, string> {
  return {
    [UID_LABEL]: request.uid,
    [PROVIDER_LABEL]: provider,
    [SPEC_HASH_LABEL]: request.specHash,
    [NAMESPACE_LABEL]: request.namespace,
  };
}

/** UID of the Proxy that the VM was made for; undefined if it is no VM of ours. */
export const ownerOf = ({ labels }: InstanceResource): string | undefined => labels?.[UID_LABEL];

/** Empty if somebody took the label away: equal to no hash, so that the VM is replaced. */
export const specHashOf = ({ labels }: InstanceResource): string => labels?.[SPEC_HASH_LABEL] ?? '';

/** Filter of instances.aggregatedList: all VMs of one provider instance. */
export const ownedBy = (provider: string): string =>
  `(labels.${UID_LABEL}:*) AND (labels.${PROVIDER_LABEL}=${provider})`;

/** Filter of instances.aggregatedList: the VM of one Proxy, in whichever zone. */
export const madeFor = (name: string, uid: string): string => `(name=${name}) AND (labels.${UID_LABEL}=${uid})`;
