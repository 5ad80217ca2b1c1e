import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Proxy } from '../../model/proxy.ts';
import { instanceOf, PROBED_OFTEN, readyAt } from './fleet.ts';
import { type Orchestrator, orchestratorEnv, runOrchestrator } from './orchestrator.ts';
import { type SquidSamples, sampleSquids, squidsOf } from './squids.ts';
import { sandboxOfThisFile } from './world.ts';

const world = sandboxOfThisFile('lost-create', { script: 'test/e2e/sandbox-without-orchestrator.ts' });
let orchestrator: Orchestrator | undefined;
let samples: { stop(): SquidSamples };
let toDelete: Proxy;
let toEdit: Proxy;

/**
 * Kills the orchestrator when the Squids of two new Proxies are there, and before anyone has been told of them; another one
 * finds one Proxy deleted and the other edited.
 */
beforeAll(async () => {
  const { fleet, sandbox } = world();
  const env = await orchestratorEnv(sandbox);
  samples = sampleSquids(sandbox.hostState);
  // Both are there when it starts, so that both are created in the same moment.
  const create = (name: string) => fleet.create(name, { provider: 'local', health: PROBED_OFTEN });
  toDelete = await create('deleted');
  toEdit = await create('edited');
  orchestrator = runOrchestrator([], env);
  while (squidsOf(sandbox.hostState).size < 2) await sleep(1);
  orchestrator.kill('SIGKILL');
  await orchestrator.exited;
  expect(fleet.watch.all().map(({ status }) => status?.providerID)).toEqual([undefined, undefined]);

  await fleet.remove('deleted');
  toEdit = await fleet.edit('edited', { port: 3399 });
  orchestrator = runOrchestrator([], env);
});

afterAll(async () => {
  orchestrator?.kill('SIGTERM');
  await orchestrator?.exited;
});

test('a Proxy that is edited after the answer to its create was lost gets a replacement, never a second instance', async () => {
  const { fleet } = world();
  const ready = await fleet.until('edited', readyAt(toEdit));
  expect(ready.status?.port).toBe(3399);
  const { doubles, pids } = samples.stop();
  expect(doubles).toEqual([]);
  expect(pids.get(instanceOf(toEdit))?.size).toBe(2);
});

test('a Proxy that is deleted after the answer to its create was lost leaves no instance', async () => {
  const { fleet, sandbox } = world();
  await fleet.gone('deleted');
  expect([...squidsOf(sandbox.hostState).keys()]).not.toContain(instanceOf(toDelete));
  expect(readdirSync(sandbox.hostState)).toEqual([instanceOf(toEdit)]);
});
