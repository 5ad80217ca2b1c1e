import { ProviderError } from '../../../model/instance.ts';
import type { Location } from './compute-api.ts';

/** `gcp://project/zone/name`: finds the VM whatever the configuration and the spec say by now. */
export const formatProviderID = ({ project, zone, name }: Location): string => `gcp://${project}/${zone}/${name}`;

/** @throws ProviderError, Permanent, if it is not one of ours. */
export function parseProviderID(providerID: string): Location {
  const [, project, zone, name] = /^gcp:\/\/([-a-z0-9.:]+)\/([-a-z0-9]+)\/([-a-z0-9]+)$/.exec(providerID) ?? [];
  if (project && zone && name) return { project, zone, name };
  throw new ProviderError('Permanent', `"${providerID}" is not gcp://project/zone/name`);
}
