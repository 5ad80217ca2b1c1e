import { existsSync, readdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

const root = '/sys/fs/cgroup';

/** The roots of the cgroup trees: one with cgroup v2, one per controller with v1. */
export function cgroupHierarchies(): string[] {
  if (!existsSync(root)) return [];
  if (existsSync(join(root, 'cgroup.controllers'))) return [root];
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(root, name));
}

/** Removes a cgroup with all below it, in every tree. False while processes in it are still on their way out. */
export function removeCgroup(name: string): boolean {
  return cgroupHierarchies()
    .map((hierarchy) => removeTree(join(hierarchy, name)))
    .every(Boolean);
}

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
