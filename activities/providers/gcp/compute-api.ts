import type { google } from '@google-cloud/compute/build/protos/protos.js';

export type InstanceResource = google.cloud.compute.v1.IInstance;
export type Operation = google.cloud.compute.v1.IOperation;
export type Address = google.cloud.compute.v1.IAddress;

/** Where exactly a VM is. */
export interface Location {
  project: string;
  zone: string;
  name: string;
}

/** One page of VMs across all zones, and the zones of which nothing is known. */
export interface InstancePage {
  instances: InstanceResource[];
  unreachable: string[];
}

/**
 * The calls of Compute Engine v1 that the provider makes, each once and without a retry. They reject with
 * {@link ApiError} for an answer that is an error, {@link CredentialsError}, or with whatever broke the connection.
 */
export interface ComputeApi {
  /** instances.insert. The operation goes on by itself; nobody waits for it. */
  insert(
    at: Omit<Location, 'name'>,
    body: InstanceResource,
    requestId: string,
    signal: AbortSignal,
  ): Promise<Operation>;
  /** instances.get; undefined if the API says that this very VM is not there. */
  get(location: Location, signal: AbortSignal): Promise<InstanceResource | undefined>;
  /** instances.delete; false if the VM is not there. */
  delete(location: Location, signal: AbortSignal): Promise<boolean>;
  /** instances.aggregatedList, page by page. */
  list(project: string, filter: string, signal: AbortSignal): AsyncIterable<InstancePage>;
  /** zoneOperations.list: the last insert of this VM, whatever came of it; operations are kept for two weeks. */
  lastInsert(location: Location, signal: AbortSignal): Promise<Operation | undefined>;
  /** addresses.list of one region. */
  addresses(project: string, region: string, signal: AbortSignal): Promise<Address[]>;
  close(): Promise<void>;
}

/** An error that the API answered with; see "Error responses" of the Compute Engine v1 reference. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status. */
  readonly status: number;
  /** `error.errors[].reason`, such as `quotaExceeded`: for 403 above all, the status alone says too little. */
  readonly reasons: readonly string[];
  readonly retryAfterMillis: number | undefined;

  constructor(status: number, message: string, reasons: readonly string[], retryAfterMillis?: number) {
    super(message);
    this.status = status;
    this.reasons = reasons;
    this.retryAfterMillis = retryAfterMillis;
  }
}

/** No access token could be had, so that the API was not even asked. */
export class CredentialsError extends Error {
  override readonly name = 'CredentialsError';
  /** Trying again by and by may help: it is not the credentials, but their server. */
  readonly passing: boolean;

  constructor(message: string, passing: boolean) {
    super(message);
    this.passing = passing;
  }
}
