import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { refOf } from '../../model/proxy.ts';
import { PROXY_WORKFLOW, proxyWorkflowID } from '../../model/workflow-names.ts';
import { type Fleet, instanceOf, PROBED_OFTEN, readyAt } from './fleet.ts';
import { type Orchestrator, orchestratorEnv, runOrchestrator } from './orchestrator.ts';
import { type Random, seededRandom } from './random.ts';
import type { Sandbox } from './sandbox.ts';
import { sampleSquids, squidsOf } from './squids.ts';
import { sandboxOfThisFile } from './world.ts';

const KILLS = 20;
const NAMES = Array.from({ length: 10 }, (_, index) => `storm-${index + 1}`) as [string, ...string[]];
/** So many are not deleted: what is deleted amid kills takes its time, and the others would soon be few. */
const LEAST = 5;
const PORTS = [3128, 3129, 3130, 3131] as const;

const world = sandboxOfThisFile('storm', { script: 'test/e2e/sandbox-without-orchestrator.ts' });
let orchestrator: Orchestrator;
let startOrchestrator: () => Orchestrator;

beforeAll(async () => {
  const env = await orchestratorEnv(world().sandbox);
  startOrchestrator = () => runOrchestrator([], env);
  orchestrator = startOrchestrator();
  await orchestrator.ready();
});

afterAll(async () => {
  orchestrator?.kill('SIGTERM');
  await orchestrator?.exited;
});

/** Kills the orchestrator at random moments of its life: while it starts, catches up, works or idles. */
async function killAtRandom(random: Random): Promise<void> {
  for (let kills = 0; kills < KILLS; kills += 1) {
    await sleep(random.between(200, 3_200));
    orchestrator.kill('SIGKILL');
    await orchestrator.exited;
    orchestrator = startOrchestrator();
  }
}

/** Creates, edits and deletes at random until `over`. Returns the port that each Proxy was last given, if it is there. */
async function changeAtRandom(random: Random, fleet: Fleet, over: Promise<unknown>): Promise<Map<string, number>> {
  const wanted = new Map<string, number>();
  const change = async (name: string) => {
    const port = random.pick(PORTS);
    if (!wanted.has(name)) {
      // A name is free again once the earlier Proxy is gone.
      if (fleet.watch.current(name)) return;
      await fleet.create(name, { provider: 'local', port, health: PROBED_OFTEN });
      wanted.set(name, port);
    } else if (wanted.size <= LEAST || random.between(1, 4) > 1) {
      await fleet.edit(name, { port });
      wanted.set(name, port);
    } else {
      await fleet.remove(name);
      wanted.delete(name);
    }
  };
  let ended = false;
  over.finally(() => {
    ended = true;
  });
  while (!ended) {
    await change(random.pick(NAMES));
    await sleep(random.between(20, 400));
  }
  return wanted;
}

test('killed 20 times amid creates, replacements and deletes, it ends with exactly one Squid per Proxy', async () => {
  const seed = Number(process.env.E2E_SEED ?? Date.now() % 1_000_000);
  console.log(`crash storm: E2E_SEED=${seed}`);
  const random = seededRandom(seed);
  const { fleet, sandbox } = world();
  const samples = sampleSquids(sandbox.hostState);
  const killing = killAtRandom(seededRandom(seed + 1));
  const wanted = await changeAtRandom(random, fleet, killing);
  await killing;
  await orchestrator.ready();

  await expectConvergence(fleet, sandbox, wanted);
  const { doubles, taken } = samples.stop();
  console.log(`crash storm: ${wanted.size} proxies left, ${taken} samples`);
  expect(doubles).toEqual([]);
}, 180_000);

async function expectConvergence(fleet: Fleet, sandbox: Sandbox, wanted: Map<string, number>): Promise<void> {
  await Promise.all(
    NAMES.map(async (name) => {
      const port = wanted.get(name);
      if (port === undefined) await fleet.gone(name);
      else await fleet.until(name, (proxy) => proxy.status?.port === port && readyAt(proxy)(proxy));
    }),
  );
  const proxies = fleet.watch.all();
  expect(new Set(proxies.map(({ metadata }) => metadata.name))).toEqual(new Set(wanted.keys()));
  const instances = proxies.map(instanceOf).sort();
  expect(readdirSync(sandbox.hostState).sort()).toEqual(instances);
  const squids = [...squidsOf(sandbox.hostState)].map(([instance, pids]) => [instance, pids.length]);
  expect(Object.fromEntries(squids)).toEqual(Object.fromEntries(instances.map((instance) => [instance, 1])));
  await vi.waitFor(async () =>
    expect(await runningWorkflows()).toEqual(proxies.map(refOf).map(proxyWorkflowID).sort()),
  );
}

async function runningWorkflows(): Promise<string[]> {
  const query = `WorkflowType = '${PROXY_WORKFLOW}' AND ExecutionStatus = 'Running'`;
  const found = await Array.fromAsync(world().histories.client.workflow.list({ query }));
  return found.map(({ workflowId }) => workflowId).sort();
}
