import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { nodeLayout } from '../../deploy/sandbox/node/layout.ts';
import { markOf } from '../../deploy/sandbox/node/remove-node.ts';
import { projectRoot } from '../../deploy/sandbox/paths.ts';
import { isRunning, signalProcess } from '../../deploy/sandbox/process-identity.ts';
import { idleProcess } from './idle-process.ts';

let parent: string;

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'sandbox-test-'));
});
afterEach(() => rmSync(parent, { recursive: true }));

it.each([
  ['is gone', false, 'Nothing to remove: there is no'],
  ['has only what the node wrote since', true, 'Removed'],
])('after a state folder was removed by hand under a killed run, clean ends what is left: it %s', (_, there, then) => {
  const dir = join(parent, 'removed');
  const layout = nodeLayout({ dir, isDefault: false });
  if (there) mkdirSync(layout.podLogs, { recursive: true });
  const node = idleProcess(markOf(layout));
  const squid = idleProcess('-N', '-f', join(dir, 'host/proxy-a/squid.conf'));
  try {
    const said = clean(dir);
    expect(said).toContain(`Stopped what a killed run had left: the node, 1 Squid\n${then} ${dir}\n`);
    expect([node, squid].map(isRunning)).toEqual([false, false]);
    expect(existsSync(dir)).toBe(false);
  } finally {
    for (const identity of [node, squid]) signalProcess(identity, 'SIGKILL');
  }
});

it('a folder that no sandbox has been in is not removed', () => {
  expect(() => clean(parent)).toThrow(/does not look like a sandbox's state/);
  expect(existsSync(parent)).toBe(true);
});

/** What it prints. */
function clean(dir: string): string {
  const env = { ...process.env, SANDBOX_DIR: dir, EGRESS_PROXY_CACHE: parent };
  return execFileSync(process.execPath, ['deploy/sandbox/clean.ts'], {
    cwd: projectRoot,
    env,
    encoding: 'utf8',
    stdio: 'pipe',
  });
}
