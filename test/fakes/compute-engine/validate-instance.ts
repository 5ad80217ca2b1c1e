import { invalid, required } from './api-error.ts';
import { MACHINE_TYPES } from './resources.ts';

const NAME = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/;
const LABEL_KEY = /^[a-z][-_a-z0-9]{0,62}$/;
const LABEL_VALUE = /^[-_a-z0-9]{0,63}$/;
const METADATA_KEY = /^[-_a-zA-Z0-9]{1,128}$/;
const METADATA_LIMIT = 262_144;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const IMAGE = /(^|\/)((projects\/[^/]+\/)?global\/images\/(family\/)?[^/]+)$/;

/** The members of an instance that this server knows; any other is a mistake of the caller's, or a gap of ours. */
const MEMBERS = [
  ...['name', 'machineType', 'disks', 'networkInterfaces', 'labels', 'metadata', 'tags', 'serviceAccounts'],
  ...['shieldedInstanceConfig', 'scheduling', 'description', 'canIpForward', 'deletionProtection'],
];

interface Body {
  name?: string;
  machineType?: string;
  disks?: { boot?: boolean; initializeParams?: { sourceImage?: string; diskSizeGb?: string; diskType?: string } }[];
  networkInterfaces?: { network?: string; subnetwork?: string; accessConfigs?: { type?: string; natIP?: string }[] }[];
  labels?: Record<string, string>;
  metadata?: { items?: { key?: string; value?: string }[] };
  tags?: { items?: string[] };
  serviceAccounts?: { email?: string; scopes?: string[] }[];
  scheduling?: { provisioningModel?: string; automaticRestart?: boolean; onHostMaintenance?: string };
}

/** What instances.insert refuses at once; throws an `ErrorAnswer`. Messages quote the value, as the real ones do. */
export function validateInstance(body: Body, zone: string, requestId: string | null): void {
  const unknown = Object.keys(body).find((member) => !MEMBERS.includes(member));
  if (unknown) throw invalid('resource', unknown, 'Unknown name: cannot find field.');
  if (requestId !== null && !UUID.test(requestId)) throw invalid('requestId', requestId, 'Must be a UUID.');
  if (!body.name) throw required('resource.name');
  if (!NAME.test(body.name)) throw invalid('resource.name', body.name, `Must be a match of regex '${NAME.source}'`);
  validateMachineType(body.machineType, zone);
  validateDisks(body.disks, zone);
  validateNetwork(body.networkInterfaces);
  validateLabels(body.labels ?? {});
  validateMetadata(body.metadata?.items ?? []);
  for (const tag of body.tags?.items ?? []) if (!NAME.test(tag)) throw invalid('resource.tags.items[0]', tag, '');
  for (const { email, scopes } of body.serviceAccounts ?? []) {
    if (!email || !scopes?.length) throw required('resource.serviceAccounts[0].scopes');
  }
  const { provisioningModel, automaticRestart, onHostMaintenance } = body.scheduling ?? {};
  if (provisioningModel === 'SPOT' && (automaticRestart !== false || onHostMaintenance !== 'TERMINATE')) {
    throw invalid('scheduling', 'SPOT', 'A Spot VM can be neither restarted nor migrated.');
  }
}

function validateMachineType(machineType: string | undefined, zone: string): void {
  if (!machineType) throw required('resource.machineType');
  const [, inZone, type = ''] = /(?:^|\/)zones\/([^/]+)\/machineTypes\/([^/]+)$/.exec(machineType) ?? [];
  if (inZone !== zone) throw invalid('resource.machineType', machineType, 'The URL is malformed.');
  if (!MACHINE_TYPES.includes(type)) {
    const why = `Machine type with name '${type}' does not exist in zone '${zone}'.`;
    throw invalid('resource.machineType', machineType, why);
  }
}

function validateDisks(disks: Body['disks'], zone: string): void {
  const boot = disks?.filter((disk) => disk.boot) ?? [];
  if (boot.length !== 1) throw invalid('resource.disks', disks?.length ?? '', 'Exactly one boot disk is required.');
  const { sourceImage, diskSizeGb, diskType } = boot[0]?.initializeParams ?? {};
  if (!sourceImage) throw required('resource.disks[0].initializeParams.sourceImage');
  if (!IMAGE.test(sourceImage)) {
    throw invalid('resource.disks[0].initializeParams.sourceImage', sourceImage, 'The URL is malformed.');
  }
  if (sourceImage.endsWith('/missing')) {
    const why = 'The referenced image resource cannot be found.';
    throw invalid('resource.disks[0].initializeParams.sourceImage', sourceImage, why);
  }
  if (diskSizeGb !== undefined && !/^[1-9]\d*$/.test(String(diskSizeGb))) {
    throw invalid('resource.disks[0].initializeParams.diskSizeGb', diskSizeGb, 'Must be positive.');
  }
  if (diskType && !diskType.includes(`zones/${zone}/diskTypes/`)) {
    throw invalid('resource.disks[0].initializeParams.diskType', diskType, 'The URL is malformed.');
  }
}

function validateNetwork(interfaces: Body['networkInterfaces']): void {
  const [first] = interfaces ?? [];
  if (!first) throw required('resource.networkInterfaces');
  const { network, subnetwork, accessConfigs = [] } = first;
  if (!network && !subnetwork) throw invalid('resource.networkInterfaces[0]', '', 'Network or subnetwork is required.');
  if (network && !network.includes('global/networks/')) {
    throw invalid('resource.networkInterfaces[0].network', network, 'The URL is malformed.');
  }
  if (subnetwork && !/regions\/[^/]+\/subnetworks\/[^/]+$/.test(subnetwork)) {
    throw invalid('resource.networkInterfaces[0].subnetwork', subnetwork, 'The URL is malformed.');
  }
  for (const { type } of accessConfigs) {
    if (type !== 'ONE_TO_ONE_NAT') throw invalid('resource.networkInterfaces[0].accessConfigs[0].type', type, '');
  }
}

function validateLabels(labels: Record<string, string>): void {
  if (Object.keys(labels).length > 64) throw invalid('resource.labels', '', 'At most 64 labels.');
  for (const [key, value] of Object.entries(labels)) {
    if (!LABEL_KEY.test(key)) throw invalid('resource.labels', key, 'The label key is not valid.');
    if (!LABEL_VALUE.test(value)) throw invalid('resource.labels', value, 'The label value is not valid.');
  }
}

function validateMetadata(items: { key?: string; value?: string }[]): void {
  const keys = items.map(({ key }) => key);
  items.forEach(({ key, value = '' }, index) => {
    const field = `resource.metadata.items[${index}]`;
    if (!key || !METADATA_KEY.test(key)) throw invalid(`${field}.key`, key, '');
    if (keys.indexOf(key) !== index) throw invalid(`${field}.key`, key, 'Duplicate keys are not allowed.');
    if (Buffer.byteLength(value) > METADATA_LIMIT) throw invalid(`${field}.value`, value, 'It is too large.');
    if (value.includes('\0')) throw invalid(`${field}.value`, value, 'It has a NUL character.');
  });
}
