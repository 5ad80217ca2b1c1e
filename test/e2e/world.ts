import { afterAll, beforeAll } from 'vitest';
import { type Proxy, refOf } from '../../model/proxy.ts';
import { proxyWorkflowID } from '../../model/workflow-names.ts';
import { type Fleet, openFleet } from './fleet.ts';
import { createLeaseClient, type LeaseClient } from './leases.ts';
import {
  newSandboxFolder,
  removeSandboxFolder,
  type Sandbox,
  type SandboxOptions,
  type SandboxSettings,
  startSandbox,
} from './sandbox.ts';
import { type Histories, openHistories } from './workflow-histories.ts';

/** A running sandbox and everything that a suite asks it through. */
export interface World {
  sandbox: Sandbox;
  /** As of the start; `sandbox.settings()` knows the orchestrator's pid of now. */
  settings: SandboxSettings;
  fleet: Fleet;
  leases: LeaseClient;
  histories: Histories;
  workflowOf(proxy: Proxy): ReturnType<Histories['client']['workflow']['getHandle']>;
}

/** Starts a sandbox before the tests of the file that calls this, and stops it after them, whatever comes of them. */
export function sandboxOfThisFile(suite: string, options: SandboxOptions = {}): () => World {
  const dir = newSandboxFolder(suite);
  let world: World | undefined;
  const clients = new AsyncDisposableStack();
  let sandbox: Sandbox | undefined;

  beforeAll(async () => {
    sandbox = await startSandbox(dir, options);
    world = await openWorld(sandbox, clients);
  });
  afterAll(async () => {
    await clients.disposeAsync();
    await sandbox?.stop();
    removeSandboxFolder(dir);
  });
  return () => {
    if (!world) throw new Error('The sandbox is not up');
    return world;
  };
}

/** Connects to a sandbox; the connections end with `clients`. */
export async function openWorld(sandbox: Sandbox, clients: AsyncDisposableStack): Promise<World> {
  const settings = sandbox.settings();
  const fleet = clients.adopt(await openFleet(settings.KUBECONFIG), (open) => open.close());
  const histories = clients.adopt(await openHistories(settings.TEMPORAL_ADDRESS), (open) => open.close());
  return {
    sandbox,
    settings,
    fleet,
    histories,
    leases: createLeaseClient(settings.LEASE_API, settings.DISCOVERY_TOKEN),
    workflowOf: (proxy) => histories.client.workflow.getHandle(proxyWorkflowID(refOf(proxy))),
  };
}
