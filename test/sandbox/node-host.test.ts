import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { projectRoot } from '../../deploy/sandbox/paths.ts';

/** `npm start -- --node` on a machine that differs from this one in that. */
function startOn(difference: string) {
  const preload = `data:text/javascript,${encodeURIComponent(difference)}`;
  const args = ['--import', preload, 'deploy/sandbox/start.ts', '--node'];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: projectRoot, encoding: 'utf8' });
  return { status, stderr };
}

it('--node on macOS is refused, with where it works and what to do with kind', () => {
  const { status, stderr } = startOn("Object.defineProperty(process, 'platform', { value: 'darwin' })");
  expect(status).toBe(2);
  expect(stderr).toMatch(/--node needs root on Linux.*darwin.*npm run orchestrator.*kind/);
  // Which would not start there either.
  expect(stderr).not.toContain('npm start -- --providers-config');
});

it('--node without root is refused, with how to go on with kind', () => {
  const { status, stderr } = startOn('process.getuid = () => 1000');
  expect(status).toBe(2);
  expect(stderr).toMatch(/--node needs root.*kind create cluster, then npm start -- --providers-config FILE/);
});
