import { type AdminDeps, administer, type EngineState } from './admin.ts';
import { createFaults, type FaultRule, type Faults } from './faults.ts';
import type { Machine } from './machines.ts';
import { createProject } from './project.ts';
import { serve } from './server.ts';
import { type Settings, settingsSchema } from './settings.ts';

export interface ComputeEngineOptions {
  projectId?: string;
  port?: number;
  settings?: Partial<Settings>;
  /** Milliseconds since the epoch. */
  now?: () => number;
  /** In [0, 1). */
  random?: () => number;
}

/**
 * A Compute Engine for tests, and for nothing else: the real one can't be reached from where this project is built.
 *
 * It speaks the JSON of the Compute Engine v1 REST reference for `instances.insert`, `.get`, `.delete` and
 * `.aggregatedList`, `zoneOperations.get` and `.list`, and `addresses.list`: request validation ("Invalid value for field
 * …"), error bodies with reasons, `Operation`s that go on by themselves and may fail at their end, `requestId`, filters,
 * `pageToken`, `returnPartialSuccess` with warnings per scope, the instance lifecycle from PROVISIONING to TERMINATED.
 * Authentication, quotas by metric, disks and networks of their own it has not.
 */
export interface ComputeEngine {
  /** For the provider's `endpoint`. */
  url: string;
  projectId: string;
  settings: Settings;
  faults: Pick<Faults, 'add' | 'clear'>;
  /** As `POST /admin/…`. */
  admin(path: 'preempt' | 'vanish' | 'strangers' | 'addresses', body: object): void;
  state(): EngineState;
  /** The VM as it is, for a test to look into or to change. */
  machine(zone: string, name: string): Machine | undefined;
  close(): Promise<void>;
}

export type { EngineState, FaultRule, Settings };

export async function startComputeEngine(options: ComputeEngineOptions = {}): Promise<ComputeEngine> {
  const { projectId = 'test-project', port = 0, now = Date.now, random = Math.random } = options;
  const settings = settingsSchema.parse(options.settings ?? {});
  const project = createProject({ id: projectId, settings, now });
  const deps: AdminDeps = { project, faults: createFaults(random), settings, calls: [], now };
  const { url, close } = await serve({ ...deps, port });
  return {
    url,
    projectId,
    settings,
    faults: deps.faults,
    admin: (path, body) => void administer('POST', `/admin/${path}`, body, deps),
    state: () => administer('GET', '/admin/state', undefined, deps) as EngineState,
    machine(zone, name) {
      project.timeline.settle();
      return project.machines.at(zone, name);
    },
    close,
  };
}
