/** The slice of Compute Engine v1's JSON that this test part keeps; names as in the REST reference. */

/** v1 `Instance`. int64 values are strings, as everywhere in this API. */
export interface Instance {
  kind: 'compute#instance';
  id: string;
  name: string;
  creationTimestamp: string;
  status: string;
  /** URL. */
  zone: string;
  machineType: string;
  selfLink: string;
  labels: Record<string, string>;
  metadata: { kind: 'compute#metadata'; items: { key: string; value: string }[] };
  networkInterfaces: NetworkInterface[];
  [other: string]: unknown;
}

export interface NetworkInterface {
  networkIP?: string;
  accessConfigs?: { type?: string; name?: string; natIP?: string }[];
  [other: string]: unknown;
}

/** v1 `Operation`, of a zone. */
export interface Operation {
  kind: 'compute#operation';
  id: string;
  name: string;
  zone: string;
  operationType: 'insert' | 'delete';
  targetLink: string;
  targetId: string;
  status: 'PENDING' | 'RUNNING' | 'DONE';
  progress: number;
  insertTime: string;
  creationTimestamp: string;
  startTime?: string;
  endTime?: string;
  clientOperationId?: string;
  error?: { errors: { code: string; message: string }[] };
  httpErrorStatusCode?: number;
  httpErrorMessage?: string;
}

/** v1 `Address`. */
export interface Address {
  kind: 'compute#address';
  name: string;
  address: string;
  status: 'RESERVED' | 'IN_USE';
  region: string;
  users?: string[];
}

/** Zones, and machine types that each of them has; a few real names. */
export const ZONES: readonly string[] = [
  ...['b', 'c', 'd'].map((letter) => `europe-west1-${letter}`),
  ...['a', 'b', 'c', 'f'].map((letter) => `us-central1-${letter}`),
];
export const MACHINE_TYPES: readonly string[] = ['e2-micro', 'e2-small', 'e2-medium', 'n2-standard-2'];

export const regionOf = (zone: string): string => zone.slice(0, zone.lastIndexOf('-'));

export const urlOf = (project: string, path: string): string =>
  `https://www.googleapis.com/compute/v1/projects/${project}/${path}`;
