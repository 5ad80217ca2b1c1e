import { afterAll, beforeAll, expect, vi } from 'vitest';
import { probeSubject } from '../../model/proxy.ts';
import type { Verdict } from '../../model/verdict.ts';
import { type System, startSystem } from '../integration/system.ts';
import { type RealServers, startRealServers } from '../setup/real-servers.ts';
import { faultTest, repetitions } from './fault.ts';

const PATIENCE = { timeout: 60_000, interval: 20 };
/** Far below the server's own 4,096, so that runs end all the time. */
const SUGGESTED_EVENTS = 150;
const FLOODS = repetitions(4, 12);
const DAYS = repetitions(3, 30);
const PER_DAY = 20;

let servers: RealServers;
let system: System;
beforeAll(async () => {
  servers = await startRealServers({ temporalConfig: { 'limit.historyCount.suggestContinueAsNew': SUGGESTED_EVENTS } });
  system = await startSystem(servers);
});
afterAll(async () => {
  await system?.stop();
  await servers?.stop();
});

async function verdict(name: string, healthy: boolean, message: string): Promise<Verdict> {
  const { status } = await system.read(name);
  const subject = probeSubject(status) ?? '';
  return { subject, healthy, message, latencyMillis: 5, checkedAt: new Date().toISOString() };
}

const healthSays = (name: string, message: string) =>
  vi.waitFor(async () => {
    const { status } = await system.read(name);
    expect(status?.conditions?.find(({ type }) => type === 'Healthy')?.message).toBe(message);
  }, PATIENCE);

/** All runs of a workflow: how many, and how long the longest history is. */
async function runsOf(workflow: string): Promise<{ count: number; longest: number }> {
  let count = 0;
  let longest = 0;
  for await (const { historyLength } of system.client.workflow.list({ query: `WorkflowId = '${workflow}'` })) {
    count += 1;
    longest = Math.max(longest, historyLength);
  }
  return { count, longest };
}

faultTest(
  {
    fault: 'flood of signals and updates over continue-as-new',
    times: FLOODS * 103,
    checked: 'no verdict and no update lost',
  },
  async () => {
    await system.apply('flooded', { provider: 'scripted' });
    const { metadata } = await system.ready('flooded', 1);
    const workflow = `proxy/default/flooded/${metadata.uid}`;
    const handle = system.client.workflow.getHandle(workflow);
    for (let flood = 1; flood <= FLOODS; flood += 1) {
      // At the end of the flood, what has a payload: it must be in the status though runs end around it.
      const last = await verdict('flooded', flood % 2 === 0, `flood ${flood}`);
      const nudges = Array.from({ length: 100 }, () => handle.signal('nudge'));
      await Promise.all([...nudges, handle.signal('verdict', last)]);
      await healthSays('flooded', `flood ${flood}`);
      const { status } = await system.read('flooded');
      const answers = await Promise.all([handle.executeUpdate('replace'), handle.executeUpdate('replace')]);
      expect(answers).toHaveLength(2);
      await vi.waitFor(async () => {
        const now = (await system.read('flooded')).status;
        expect(now?.incarnation).toBeGreaterThan(status?.incarnation ?? 0);
        expect(now?.phase).toMatch(/Ready|Provisioned/);
      }, PATIENCE);
    }
    expect((await runsOf(workflow)).count).toBeGreaterThan(1);
    await system.remove('flooded');
    await system.gone('flooded');
  },
  600_000,
);

faultTest(
  {
    fault: `${DAYS} days of edits and flips, one after the other`,
    times: DAYS * PER_DAY,
    checked: 'each is in the status; no run near its limits',
  },
  async () => {
    await system.apply('old', { provider: 'scripted' });
    const { metadata } = await system.ready('old', 1);
    const workflow = `proxy/default/old/${metadata.uid}`;
    const handle = system.client.workflow.getHandle(workflow);
    for (let change = 1; change <= (DAYS * PER_DAY) / 2; change += 1) {
      await system.patch('old', { spec: { attributes: { change: String(change) } } });
      await vi.waitFor(async () => {
        const { status, metadata: now } = await system.read('old');
        expect(status?.observedGeneration).toBe(now.generation);
      }, PATIENCE);
      await handle.signal('verdict', await verdict('old', change % 2 === 0, `change ${change}`));
      await healthSays('old', `change ${change}`);
    }
    const { longest, count } = await runsOf(workflow);
    expect(count).toBeGreaterThan(1);
    expect(longest).toBeLessThan(2 * SUGGESTED_EVENTS);
    await system.remove('old');
    await system.gone('old');
  },
  600_000,
);
