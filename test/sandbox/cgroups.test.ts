import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createCgroup, removeCgroup } from '../../deploy/sandbox/node/cgroups.ts';
import { signalProcess } from '../../deploy/sandbox/process-identity.ts';
import { idleProcess } from './idle-process.ts';

describe('a cgroup for pods, in a file system that looks like that of cgroups', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'sandbox-test-'));
  });
  afterEach(() => rmSync(root, { recursive: true }));

  it('with v2 gets each controller that kubelet wants and the machine has', () => {
    writeFileSync(join(root, 'cgroup.controllers'), 'cpuset cpu io memory hugetlb rdma pids misc\n');
    writeFileSync(join(root, 'cgroup.subtree_control'), 'memory pids\n');
    createCgroup('egress-test', root);
    expect(readFileSync(join(root, 'cgroup.subtree_control'), 'utf8')).toBe('+cpuset +cpu +hugetlb');
    expect(existsSync(join(root, 'egress-test'))).toBe(true);
  });

  it('with v1 is made in the tree of each controller', () => {
    for (const controller of ['cpu', 'memory']) mkdirSync(join(root, controller));
    createCgroup('egress-test', root);
    expect(['cpu', 'memory'].map((name) => existsSync(join(root, name, 'egress-test')))).toEqual([true, true]);
    expect(removeCgroup('egress-test', root)).toBe(true);
    expect(existsSync(join(root, 'cpu/egress-test'))).toBe(false);
  });
});

/** Where cgroup v2 is, if only beside v1: it has those controllers then that v1 has no tree for. */
const unified = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified'].find((root) => {
  try {
    return readFileSync(join(root, 'cgroup.controllers'), 'utf8').trim() !== '';
  } catch {
    return false;
  }
});

describe.skipIf(!unified || process.getuid?.() !== 0)('a cgroup for pods, in the tree of the kernel', () => {
  const root = unified ?? '';
  const [name, inner] = [`egress-test-${process.pid}`, 'inner'];
  const own = join(root, name);
  const before = unified ? words(join(root, 'cgroup.subtree_control')) : [];
  afterEach(() => {
    removeCgroup(name, root);
    const added = words(join(root, 'cgroup.subtree_control')).filter((controller) => !before.includes(controller));
    if (added.length > 0) {
      writeFileSync(join(root, 'cgroup.subtree_control'), added.map((controller) => `-${controller}`).join(' '));
    }
  });

  it('has what kubelet looks for', () => {
    createCgroup(name, root);
    const wanted = words(join(root, 'cgroup.controllers')).filter((controller) =>
      ['cpu', 'cpuset', 'memory', 'hugetlb', 'pids'].includes(controller),
    );
    expect(words(join(own, 'cgroup.controllers'))).toEqual(expect.arrayContaining(wanted));
  });

  it('is refused below one that has processes, as in a container, with what to do instead', async () => {
    createCgroup(name, root);
    const resident = idleProcess();
    try {
      writeFileSync(join(own, 'cgroup.procs'), `${resident.pid}`);
      expect(() => createCgroup(inner, own)).toThrow(/processes are in .*container.*kind/);
      expect(existsSync(join(own, inner))).toBe(false);
    } finally {
      signalProcess(resident, 'SIGKILL');
      await expect.poll(() => removeCgroup(name, root)).toBe(true);
    }
  });
});

function words(file: string): string[] {
  return readFileSync(file, 'utf8').split(/\s+/).filter(Boolean);
}
