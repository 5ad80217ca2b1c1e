import type { Instance, InstanceState } from '../../../model/instance.ts';
import type { InstanceResource, Location } from './compute-api.ts';
import { ownerOf, specHashOf } from './ownership.ts';
import { formatProviderID } from './provider-id.ts';

/** `status` of an instance, see "VM instance lifecycle". What is not here, or not known yet, is Stopped. */
const ON_ITS_WAY: readonly string[] = ['PENDING', 'PROVISIONING', 'STAGING', 'REPAIRING'];

/** What the API says of a VM, in the contract's terms. It must be one of ours. */
export function instanceOf(resource: InstanceResource, location: Location): Instance {
  const ip = addressOf(resource);
  return {
    name: location.name,
    providerID: formatProviderID(location),
    uid: ownerOf(resource) ?? '',
    // One that did not say would count as new: too young to be swept away.
    createdAt: new Date(resource.creationTimestamp ?? Date.now()).toISOString(),
    specHash: specHashOf(resource),
    ...stateOf(resource, ip),
    ...(ip !== undefined && { ip }),
  };
}

function stateOf(resource: InstanceResource, ip: string | undefined): { state: InstanceState; reason?: string } {
  const status = String(resource.status ?? 'unknown');
  if (status === 'RUNNING')
    return ip ? { state: 'Running' } : { state: 'Provisioning', reason: 'it has no address yet' };
  if (ON_ITS_WAY.includes(status)) return { state: 'Provisioning', reason: `it is ${status}` };
  const spot = resource.scheduling?.provisioningModel === 'SPOT' ? ', maybe preempted: it is a Spot VM' : '';
  return { state: 'Stopped', reason: `it is ${status}${spot}` };
}

/** The public address; the internal one of a VM that was never to have a public one. */
function addressOf({ networkInterfaces }: InstanceResource): string | undefined {
  const [first] = networkInterfaces ?? [];
  const [access] = first?.accessConfigs ?? [];
  return (access ? access.natIP : first?.networkIP) || undefined;
}

/** Where a VM from a list is. `zone` is a URL there. */
export function locationOf({ zone, name }: InstanceResource, project: string): Location {
  return { project, zone: zone?.split('/').at(-1) ?? '', name: name ?? '' };
}
