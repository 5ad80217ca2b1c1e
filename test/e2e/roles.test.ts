import { afterAll, expect, test, vi } from 'vitest';
import { PROBED_OFTEN, readyAt } from './fleet.ts';
import { createLeaseClient } from './leases.ts';
import { type Orchestrator, orchestratorEnv, runOrchestrator } from './orchestrator.ts';
import { clientSeenThrough } from './through-proxy.ts';
import { sandboxOfThisFile } from './world.ts';

const TOKEN = 'a-token-of-this-test';
/** What each role needs to know; with anything less it must not start, with this it must. */
const NEEDS = {
  watcher: ['KUBECONFIG', 'TEMPORAL_ADDRESS', 'METRICS_ADDRESS'],
  worker: ['KUBECONFIG', 'TEMPORAL_ADDRESS', 'METRICS_ADDRESS', 'PROVIDERS_CONFIG', 'PROBE_URL', 'PROBE_CA_FILE'],
  api: ['KUBECONFIG', 'METRICS_ADDRESS', 'LEASE_API_ADDRESS', 'LEASE_DB', 'DISCOVERY_TOKEN'],
} as const;

const world = sandboxOfThisFile('roles', { script: 'test/e2e/sandbox-without-orchestrator.ts' });
const processes: Orchestrator[] = [];

afterAll(async () => {
  for (const process of processes) process.kill('SIGTERM');
  await Promise.all(processes.map(({ exited }) => exited));
});

/** Starts the role with what it needs and nothing else. */
async function startRole(role: keyof typeof NEEDS): Promise<Record<string, string>> {
  const all: Record<string, string> = { ...(await orchestratorEnv(world().sandbox)), DISCOVERY_TOKEN: TOKEN };
  const env = Object.fromEntries(NEEDS[role].map((key) => [key, all[key] ?? '']));
  const process = runOrchestrator(['--role', role], env);
  processes.push(process);
  await process.ready();
  return env;
}

test('watcher, worker and api as three processes provision, probe and lease a Proxy, and stop cleanly', async () => {
  const { fleet, settings } = world();
  const [, , api] = await Promise.all([startRole('watcher'), startRole('worker'), startRole('api')]);
  const created = await fleet.create('split', { provider: 'local', health: PROBED_OFTEN });
  const ready = await fleet.until('split', readyAt(created));

  const url = `http://${api.LEASE_API_ADDRESS}`;
  expect((await createLeaseClient(url).take({})).status).toBe(401);
  const lease = await vi.waitFor(async () => {
    const answer = await createLeaseClient(url, TOKEN).take({});
    expect(answer.status).toBe(201);
    return answer.body;
  });
  expect(await clientSeenThrough(lease.proxy?.url ?? '', settings.PROBE_TARGET_HTTP)).toBe(ready.status?.ip);

  await fleet.remove('split');
  await fleet.gone('split');
  for (const process of processes) process.kill('SIGTERM');
  expect(await Promise.all(processes.map(({ exited }) => exited))).toEqual([0, 0, 0]);
});
