import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SandboxError } from '../failure.ts';
import { anyCluster } from './requirements.ts';

const cgroupFileSystem = '/sys/fs/cgroup';
/** With cgroup v2, kubelet refuses a root of its pods that lacks one of these and could have it. */
const ofKubelet = ['cpu', 'cpuset', 'memory', 'hugetlb', 'pids'];

/** Makes a cgroup for pods, in every tree. `root` is where the file system of cgroups is. */
export function createCgroup(name: string, root = cgroupFileSystem): void {
  try {
    if (isUnified(root)) enableControllers(root);
    for (const hierarchy of hierarchiesOf(root)) mkdirSync(join(hierarchy, name), { recursive: true });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why =
      code === 'EBUSY'
        ? `processes are in ${root} itself, as is usual in a container, and then the kernel gives no controllers to cgroups below it`
        : message;
    throw new SandboxError(`The node can't have a cgroup of its own: ${why}. ${anyCluster}`);
  }
}

/** Removes a cgroup with all below it, in every tree. False while processes in it are still on their way out. */
export function removeCgroup(name: string, root = cgroupFileSystem): boolean {
  return hierarchiesOf(root)
    .map((hierarchy) => removeTree(join(hierarchy, name)))
    .every(Boolean);
}

/** With cgroup v2 there is one tree, whose root this is; with v1 one per controller, in folders of it. */
const isUnified = (root: string): boolean => existsSync(join(root, 'cgroup.controllers'));

function hierarchiesOf(root: string): string[] {
  if (!existsSync(root)) return [];
  if (isUnified(root)) return [root];
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(root, name));
}

/**
 * A cgroup has those controllers that its parent has enabled for its children, see cgroup-v2.rst of the kernel. They stay
 * enabled, as after any other kubelet or container engine: others may have come to need them.
 */
function enableControllers(parent: string): void {
  const enabled = words(join(parent, 'cgroup.subtree_control'));
  const wanted = words(join(parent, 'cgroup.controllers')).filter((name) => ofKubelet.includes(name));
  const missing = wanted.filter((name) => !enabled.includes(name));
  if (missing.length > 0) {
    writeFileSync(join(parent, 'cgroup.subtree_control'), missing.map((name) => `+${name}`).join(' '));
  }
}

const words = (file: string): string[] => readFileSync(file, 'utf8').split(/\s+/).filter(Boolean);

/** Its files go with a cgroup and can't be removed themselves, so `rm -r` is of no use here. */
function removeTree(folder: string): boolean {
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (entry.isDirectory() && !removeTree(join(folder, entry.name))) return false;
    }
    rmdirSync(folder);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}
