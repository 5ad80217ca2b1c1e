import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, vi } from 'vitest';
import { obtainParts } from '../../deploy/sandbox/parts.ts';
import { randomPort } from '../../deploy/sandbox/ports.ts';
import { startTemporal, type Temporal } from '../../deploy/sandbox/temporal.ts';
import type { ManagedSpec } from '../../model/proxy.ts';
import { type System, startSystem } from '../integration/system.ts';
import { faultTest } from './fault.ts';

const SPEC: ManagedSpec = { provider: 'scripted' };
const PATIENCE = { timeout: 60_000, interval: 100 };

/** A Temporal of this suite's own, on ports that stay, since it is lost and found. */
let temporal: Temporal;
let restartTemporal: () => Promise<void>;
let system: System;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  const dir = mkdtempSync(join(tmpdir(), 'faults-temporal-'));
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
  const { temporal: binary } = await obtainParts({ only: ['temporal'] });
  const [grpc, http, metrics, ui] = await Promise.all([randomPort(), randomPort(), randomPort(), randomPort()]);
  // Without a database file, what it knew is gone with the process.
  const start = () => startTemporal({ binary, dir, headless: true, ports: { grpc, http, metrics, ui } });
  temporal = await start();
  stack.defer(() => temporal.stop());
  restartTemporal = async () => {
    temporal.kill('SIGKILL');
    await temporal.exited;
    temporal = await start();
  };
  system = await startSystem(
    { kubeconfig: inject('kubeconfig'), temporalAddress: temporal.address },
    { watchResyncMillis: 1_000 },
  );
  stack.defer(() => system.stop());
});
afterAll(() => stack.disposeAsync());

const running = (workflow: string) =>
  vi.waitFor(async () => {
    const { status } = await system.client.workflow.getHandle(workflow).describe();
    expect(status.name).toBe('RUNNING');
  }, PATIENCE);

async function remove(...names: string[]): Promise<void> {
  for (const name of names) await system.remove(name);
  for (const name of names) await system.gone(name);
}

for (const how of ['terminate', 'cancel'] as const) {
  faultTest(
    { fault: `workflow: ${how} by hand`, times: 1, checked: 'back within a resync, adopts its instance' },
    async () => {
      const { workflow, instance } = await system.apply(`${how}d`, SPEC);
      await system.ready(`${how}d`, 1);
      await system.client.workflow.getHandle(workflow)[how]();
      await vi.waitFor(async () => {
        const { status } = await system.client.workflow.getHandle(workflow).describe();
        expect(status.name).toBe('RUNNING');
      }, PATIENCE);
      await running(workflow);
      await system.patch(`${how}d`, { spec: { attributes: { after: how } } });
      await vi.waitFor(async () => {
        const { status, metadata } = await system.read(`${how}d`);
        expect(status).toMatchObject({ observedGeneration: metadata.generation, incarnation: 1, phase: 'Ready' });
      }, PATIENCE);
      expect(system.provider.made(instance)).toBe(1);
      await remove(`${how}d`);
    },
  );
}

faultTest({ fault: 'workflow: reset by hand', times: 1, checked: 'goes on, nothing made twice' }, async () => {
  const { workflow, instance } = await system.apply('reset', SPEC);
  await system.ready('reset', 1);
  const { client } = system;
  const { runId } = await client.workflow.getHandle(workflow).describe();
  // The first workflow task: everything is lived through once more.
  const { events } = await client.workflow.getHandle(workflow, runId).fetchHistory();
  const first = events?.find(({ workflowTaskCompletedEventAttributes: completed }) => completed)?.eventId;
  assert(first);
  await client.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: workflow, runId },
    reason: 'a person tried it',
    workflowTaskFinishEventId: first,
    requestId: 'reset-by-hand',
  });
  await running(workflow);
  await system.patch('reset', { spec: { port: 3202 } });
  const proxy = await system.ready('reset', 2);
  expect(proxy.status?.port).toBe(3202);
  expect(system.provider.made(instance)).toBe(2);
  await remove('reset');
});

faultTest(
  {
    fault: 'Temporal: killed, its database lost',
    times: 1,
    checked: 'every workflow comes back and adopts; edits and deletions meanwhile are acted on',
  },
  async () => {
    const names = ['kept-1', 'kept-2', 'kept-3', 'edited', 'deleted'];
    const applied = await Promise.all(names.map((name) => system.apply(name, SPEC)));
    for (const name of names) await system.ready(name, 1);
    const creates = () => system.provider.calls.filter((call) => call.startsWith('create')).length;
    const before = creates();

    await restartTemporal();
    await system.patch('edited', { spec: { port: 3203 } });
    await system.remove('deleted');

    await system.gone('deleted');
    await system.ready('edited', 2);
    for (const { workflow } of applied.slice(0, 3)) await running(workflow);
    for (const name of names.slice(0, 3)) await system.patch(name, { spec: { attributes: { after: 'loss' } } });
    for (const name of names.slice(0, 3)) {
      await vi.waitFor(async () => {
        const { status, metadata } = await system.read(name);
        expect(status).toMatchObject({ observedGeneration: metadata.generation, incarnation: 1, phase: 'Ready' });
      }, PATIENCE);
    }
    expect(creates()).toBe(before + 1);
    expect(applied.map(({ instance }) => system.provider.instances.has(instance))).toEqual([
      true,
      true,
      true,
      true,
      false,
    ]);
    await remove(...names.slice(0, 4));
  },
  180_000,
);
