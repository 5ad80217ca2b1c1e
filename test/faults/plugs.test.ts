import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, vi } from 'vitest';
import type { Proxy } from '../../model/proxy.ts';
import { instanceOf, PROBED_OFTEN, readyAt } from '../e2e/fleet.ts';
import { sampleSquids, squidOf, squidsOf } from '../e2e/squids.ts';
import { sandboxOfThisFile } from '../e2e/world.ts';
import { faultTest, repetitions } from './fault.ts';

const TIMES = repetitions(1, 4);
const PAUSE_MILLIS = 3_000;
const PATIENCE = { timeout: 90_000, interval: 200 };
const PARTS = ['orchestrator', 'temporal', 'kube-apiserver', 'etcd'] as const;
const STEADY = ['steady-1', 'steady-2'];
const CHANGING = ['changing-1', 'changing-2', 'changing-3'] as const;

const world = sandboxOfThisFile('plugs');
const leases: string[] = [];
let edits = 0;

beforeAll(async () => {
  const { fleet, leases: api } = world();
  for (const name of [...STEADY, ...CHANGING]) {
    const proxy = await fleet.create(name, { provider: 'local', health: PROBED_OFTEN, attributes: { name } });
    await fleet.until(name, readyAt(proxy));
  }
  for (const name of STEADY) {
    const { body } = await api.take({ selector: { name }, ttlSeconds: 3600 });
    leases.push(body.leaseID as string);
  }
});

const pidOf = (part: string): number =>
  (JSON.parse(readFileSync(join(world().sandbox.dir, 'run', `${part}.json`), 'utf8')) as { pid: number }).pid;

/** After the fault: an edit is acted on, one Squid per Proxy at every moment, steady Proxies and leases as before. */
async function survives(fault: () => Promise<void>): Promise<void> {
  const { fleet, sandbox, leases: api } = world();
  const samples = sampleSquids(sandbox.hostState);
  const steady = STEADY.map((name) => squidOf(sandbox.hostState, instanceOf(fleet.watch.current(name) as Proxy)));
  await fault();
  edits += 1;
  const name = CHANGING[edits % CHANGING.length] as string;
  const port = 3200 + edits;
  const edited = await vi.waitFor(() => fleet.edit(name, { port }), PATIENCE);
  await vi.waitFor(() => {
    const proxy = fleet.watch.current(name) as Proxy;
    expect(proxy.status).toMatchObject({ phase: 'Ready', port, observedGeneration: edited.metadata.generation });
  }, PATIENCE);
  expect(samples.stop().doubles).toEqual([]);
  expect(squidsOf(sandbox.hostState).size).toBe(STEADY.length + CHANGING.length);
  expect(STEADY.map((each) => squidOf(sandbox.hostState, instanceOf(fleet.watch.current(each) as Proxy)))).toEqual(
    steady,
  );
  await vi.waitFor(async () => {
    for (const lease of leases) expect((await api.renew(lease, 3600)).status).toBe(200);
  }, PATIENCE);
}

const CHECKED = 'edits acted on, one Squid per Proxy, no lease lost';

for (const part of PARTS) {
  faultTest(
    { fault: `${part}: kill -9`, times: TIMES, checked: CHECKED },
    async () => {
      for (let time = 0; time < TIMES; time += 1) {
        await survives(async () => {
          const pid = pidOf(part);
          process.kill(pid, 'SIGKILL');
          await vi.waitFor(() => expect(pidOf(part)).not.toBe(pid), PATIENCE);
        });
      }
    },
    400_000,
  );

  faultTest(
    { fault: `${part}: paused for ${PAUSE_MILLIS / 1000} s`, times: TIMES, checked: CHECKED },
    async () => {
      for (let time = 0; time < TIMES; time += 1) {
        await survives(async () => {
          const pid = pidOf(part);
          process.kill(pid, 'SIGSTOP');
          try {
            await sleep(PAUSE_MILLIS);
          } finally {
            process.kill(pid, 'SIGCONT');
          }
        });
      }
    },
    400_000,
  );
}

faultTest(
  { fault: 'a Squid: kill -9', times: TIMES, checked: 'replaced; nothing else touched' },
  async () => {
    const { fleet, sandbox } = world();
    for (let time = 0; time < TIMES; time += 1) {
      const name = CHANGING[time % CHANGING.length] as string;
      const before = fleet.watch.current(name) as Proxy;
      await survives(async () => {
        process.kill(squidOf(sandbox.hostState, instanceOf(before)), 'SIGKILL');
        await vi.waitFor(() => {
          const { status } = fleet.watch.current(name) as Proxy;
          expect(status?.phase).toBe('Ready');
          expect(status?.incarnation).toBeGreaterThan(before.status?.incarnation ?? 0);
        }, PATIENCE);
      });
    }
  },
  400_000,
);
