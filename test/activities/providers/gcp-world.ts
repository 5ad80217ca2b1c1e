import { onTestFinished } from 'vitest';
import type { Provider } from '../../../activities/providers/contract.ts';
import { createGcpProvider, gcpConfig } from '../../../activities/providers/gcp/index.ts';
import type { InstanceRequest } from '../../../model/instance.ts';
import { type ComputeEngine, type ComputeEngineOptions, startComputeEngine } from '../../fakes/compute-engine/index.ts';
import { requestFor } from './conformance.ts';

export const ZONE = 'europe-west1-b';
export const PLACEMENT = {
  zone: ZONE,
  machineType: 'e2-micro',
  image: 'projects/debian-cloud/global/images/family/debian-12',
};

/** A Compute Engine of a test's own, gone at its end. */
export interface GcpWorld {
  engine: ComputeEngine;
  /** A provider on it, with Google's client; every call makes another, as another worker would. */
  start(overrides?: Record<string, unknown>): Promise<Provider>;
}

export async function gcpWorld(options: ComputeEngineOptions = {}): Promise<GcpWorld> {
  const engine = await startComputeEngine(options);
  onTestFinished(() => engine.close());
  return {
    engine,
    start: (overrides = {}) =>
      createGcpProvider(
        gcpConfig.parse({ ...onEngine(engine), ...overrides }),
        options.now ? { now: options.now } : {},
      ),
  };
}

/** The least configuration of a provider on this engine. */
export const onEngine = ({ url, projectId }: ComputeEngine) => ({
  name: 'gcp',
  type: 'gcp',
  projectId,
  endpoint: url,
  credentials: 'none',
});

/** A provider each of whose calls is taken by the worker that is chosen for it. */
export const takenBy = (worker: () => Provider): Provider => ({
  create: (...args) => worker().create(...args),
  get: (...args) => worker().get(...args),
  delete: (...args) => worker().delete(...args),
  list: (...args) => worker().list(...args),
  close: () => worker().close(),
});

export const gcpRequest = (uid: string, more: Partial<InstanceRequest> = {}): InstanceRequest =>
  requestFor(uid, { placement: PLACEMENT, ...more });
