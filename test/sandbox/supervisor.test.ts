import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { identify } from '../../deploy/sandbox/process-identity.ts';
import { startChild } from '../../deploy/sandbox/processes.ts';
import { supervise } from '../../deploy/sandbox/supervisor.ts';

it('a part that is killed is started again, and stopping ends it for good', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'sandbox-test-'));
  const pids: number[] = [];
  const start = (signal: AbortSignal) =>
    startChild({
      name: 'idle',
      command: process.execPath,
      args: ['-e', 'setTimeout(() => {}, 60_000)'],
      logFile: join(dir, 'idle.log'),
      ready: async () => true,
      onSpawn: (pid) => pids.push(pid),
      signal,
    });
  const first = await start(new AbortController().signal);
  const supervised = supervise(first, start, () => {});
  first.kill('SIGKILL');
  await vi.waitFor(() => expect(pids).toHaveLength(2), { timeout: 5_000 });
  await supervised.stop();
  expect(pids.map(identify)).toEqual([undefined, undefined]);
  rmSync(dir, { recursive: true });
});

it('a part that ends before it is ready fails with its last lines', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'sandbox-test-'));
  const start = startChild({
    name: 'broken',
    command: process.execPath,
    args: ['-e', 'console.error("providers.yaml: providers[0].type"); process.exit(2)'],
    logFile: join(dir, 'broken.log'),
    ready: async () => false,
  });
  await expect(start).rejects.toThrow(/broken ended \(2\) before it was ready.*providers\[0\]\.type.*broken\.log/s);
  rmSync(dir, { recursive: true });
});
