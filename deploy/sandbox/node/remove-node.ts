import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxError } from '../failure.ts';
import { findByArgument, stopProcess } from '../process-identity.ts';
import { removeCgroup } from './cgroups.ts';
import type { NodeLayout } from './layout.ts';

const patienceMs = 10_000;

/** An argument that only the first processes of this node have. */
export const markOf = ({ dir }: NodeLayout): string => `egress-node=${dir}`;

/**
 * Ends whatever is left of a node, and returns when nothing is: no process, no network interface, no cgroup. For the end
 * of a run, and for the next start after one that was killed. Does nothing where there is none.
 */
export async function removeNode(layout: NodeLayout): Promise<void> {
  const mark = markOf(layout);
  const deadline = Date.now() + patienceMs;
  for (;;) {
    // The first process of a pid namespace is gone only when all others in there are.
    const processes = findByArgument((argument) => argument === mark);
    await Promise.all(processes.map((found) => stopProcess(found, { graceMs: 0, polite: 'SIGKILL' })));
    const linked = existsSync(`/sys/class/net/${layout.hostLink}`);
    if (processes.length === 0 && !linked && removeCgroup(layout.cgroup)) return;
    if (Date.now() > deadline) {
      const what = linked ? `the network interface ${layout.hostLink}` : `the cgroup ${layout.cgroup}`;
      throw new SandboxError(`What the node of ${layout.dir} has made does not go away: ${what}.`);
    }
    await sleep(50);
  }
}
