import { type InstanceRequest, ProviderError } from '../../../model/instance.ts';
import type { InstanceResource } from './compute-api.ts';
import { type GcpConfig, gcpLabels } from './config.ts';
import { ownershipLabels, PROXY_METADATA } from './ownership.ts';

/** Compute Engine's own limit of one metadata value. */
const METADATA_LIMIT_BYTES = 262_144;

/** A placement, with the configuration's defaults, that has all that a VM needs. */
export interface ResolvedPlacement {
  zone: string;
  machineType: string;
  image: string;
  network?: string;
  subnetwork?: string;
  diskGB?: number;
  labels: Record<string, string>;
}

/** @throws ProviderError, Permanent, that names everything which is missing or wrong. */
export function resolvePlacement(
  { placement, cloudInit }: InstanceRequest,
  { defaults }: GcpConfig,
): ResolvedPlacement {
  const { zone = defaults.zone, machineType, image, labels = {}, ...rest } = placement;
  const problems = Object.entries({ zone, machineType, image }).flatMap(([field, value]) =>
    value ? [] : [`spec.placement.${field} is missing`],
  );
  if (zone && !/^[a-z0-9-]+$/.test(zone)) problems.push(`spec.placement.zone "${zone}" is not the name of a zone`);
  for (const { path, message } of gcpLabels.safeParse(labels).error?.issues ?? []) {
    problems.push(`spec.placement.labels.${path.join('.')}: ${message}`);
  }
  if (cloudInit !== undefined && Buffer.byteLength(cloudInit) > METADATA_LIMIT_BYTES) {
    problems.push(`the cloud-init is larger than ${METADATA_LIMIT_BYTES} bytes`);
  }
  if (!zone || !machineType || !image || problems.length > 0) {
    throw new ProviderError('Permanent', `Compute Engine can't make this: ${problems.join('; ')}`);
  }
  // A default subnetwork belongs to the default network, not to one that the Proxy chose.
  const attached =
    rest.network || rest.subnetwork ? {} : { network: defaults.network, subnetwork: defaults.subnetwork };
  return { ...given({ diskGB: defaults.diskGB, ...attached, ...given(rest) }), zone, machineType, image, labels };
}

/** What a placement has of these, without members that are undefined. */
function given<T extends object>(members: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never;
}

/**
 * The body of instances.insert. A placement's machineType, image, network and subnetwork are names, or URLs, partial or
 * whole; an image may so be a family: `projects/debian-cloud/global/images/family/debian-12`.
 * @param natIP a reserved address to have, or undefined for what the configuration says
 */
export function instanceResource(
  request: InstanceRequest,
  placement: ResolvedPlacement,
  config: GcpConfig,
  natIP: string | undefined,
): InstanceResource {
  const { zone, machineType, image, network, subnetwork, diskGB } = placement;
  const { defaults, serviceAccount, externalAddress, shieldedVm, spot, tags } = config;
  const labels = { ...config.labels, ...placement.labels, ...ownershipLabels(request, config.name) };
  const metadata = {
    [PROXY_METADATA]: `${request.namespace}/${request.proxyName}`,
    ...(request.cloudInit !== undefined && { 'user-data': request.cloudInit }),
  };
  const diskType = defaults.diskType && `zones/${zone}/diskTypes/${defaults.diskType}`;
  return {
    name: request.name,
    machineType: path(`zones/${zone}/machineTypes`, machineType),
    disks: [
      {
        boot: true,
        autoDelete: true,
        initializeParams: {
          sourceImage: path('global/images', image),
          labels,
          ...(diskGB !== undefined && { diskSizeGb: String(diskGB) }),
          ...(diskType && { diskType }),
        },
      },
    ],
    networkInterfaces: [
      {
        ...((network || !subnetwork) && { network: path('global/networks', network ?? 'default') }),
        ...(subnetwork && { subnetwork: path(`regions/${regionOf(zone)}/subnetworks`, subnetwork) }),
        ...(externalAddress !== 'none' && {
          accessConfigs: [{ name: 'External NAT', type: 'ONE_TO_ONE_NAT', ...(natIP && { natIP }) }],
        }),
      },
    ],
    labels,
    metadata: { items: Object.entries(metadata).map(([key, value]) => ({ key, value })) },
    ...(tags.length > 0 && { tags: { items: tags } }),
    ...(serviceAccount !== 'none' && { serviceAccounts: [serviceAccount] }),
    ...(shieldedVm && {
      shieldedInstanceConfig: { enableSecureBoot: true, enableVtpm: true, enableIntegrityMonitoring: true },
    }),
    ...(spot && { scheduling: SPOT }),
  };
}

/** Stopped, not deleted, when preempted: so it is still there to say what has become of it. */
const SPOT = {
  provisioningModel: 'SPOT',
  instanceTerminationAction: 'STOP',
  onHostMaintenance: 'TERMINATE',
  automaticRestart: false,
};

const path = (collection: string, name: string): string => (name.includes('/') ? name : `${collection}/${name}`);

/** `europe-west1` of `europe-west1-b`. */
export const regionOf = (zone: string): string => zone.slice(0, zone.lastIndexOf('-'));
