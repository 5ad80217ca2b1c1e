import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { describeFailure, SandboxError } from '../../deploy/sandbox/failure.ts';
import { removeNode } from '../../deploy/sandbox/node/remove-node.ts';
import { sandboxPaths } from '../../deploy/sandbox/paths.ts';
import { findByArgument, signalProcess } from '../../deploy/sandbox/process-identity.ts';
import { startSandbox } from '../../deploy/sandbox/session.ts';

vi.mock('../../deploy/sandbox/node/remove-node.ts', { spy: true });

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'sandbox-test-'));
});
afterEach(() => {
  vi.restoreAllMocks();
  for (const left of findByArgument((argument) => argument.includes(dir))) signalProcess(left, 'SIGKILL');
  rmSync(dir, { recursive: true });
});

/** A part that is nothing but this script. */
function stub(name: string, script: string): string {
  const path = join(dir, name);
  writeFileSync(path, `#!${process.execPath}\n${script}`, { mode: 0o755 });
  return path;
}

const etcd = `
  const url = process.argv.find((argument) => argument.startsWith('--listen-client-urls=')).split('=')[1];
  require('node:http').createServer((_, response) => response.end()).listen(new URL(url).port, '127.0.0.1');
`;
const silent = { line() {}, step: () => ({ note() {}, done() {}, failed() {} }), close() {} };

it('a part that does not go away keeps no other, hides no reason, and lets go of the state folder', async () => {
  const paths = sandboxPaths({ SANDBOX_DIR: join(dir, 'state') });
  const parts = {
    etcd: stub('etcd', etcd),
    'kube-apiserver': stub('kube-apiserver', 'console.error("no disk"); process.exit(1);'),
    kubectl: stub('kubectl', ''),
    temporal: stub('temporal', 'setTimeout(() => {}, 60_000);'),
    squid: '/nowhere/squid',
  };
  const started = startSandbox({
    paths,
    parts: async () => {
      // From here on, so that it is the cleanup that fails.
      vi.mocked(removeNode).mockRejectedValue(new SandboxError('the node is stuck'));
      return parts;
    },
    orchestrator: { command: stub('orchestrator', ''), args: [] },
    progress: silent,
    signal: new AbortController().signal,
    hurry: new AbortController().signal,
  });
  const error = await started.catch((reason: unknown) => reason);
  expect(describeFailure(error)).toMatch(/kube-apiserver ended \(1\)[\s\S]*no disk[\s\S]*\nthe node is stuck$/);
  expect(findByArgument((argument) => argument.includes(dir))).toEqual([]);
  expect(existsSync(paths.lock)).toBe(false);
});
