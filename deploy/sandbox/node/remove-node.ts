import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { allSettled } from '../all-or-nothing.ts';
import { SandboxError } from '../failure.ts';
import { findByArgument, stopProcess } from '../process-identity.ts';
import { removeCgroup } from './cgroups.ts';
import type { NodeLayout } from './layout.ts';

/** An argument that only the first processes of this node have. */
export const markOf = ({ dir }: NodeLayout): string => `egress-node=${dir}`;

/**
 * Ends whatever is left of a node, and returns when nothing is: no process, no network interface, no cgroup. For the end
 * of a run, and for the next start after one that was killed. Does nothing where there is none; returns whether there was
 * one. What has not gone after `patienceMs` is named in a SandboxError.
 */
export async function removeNode(layout: NodeLayout, patienceMs = 10_000): Promise<boolean> {
  const mark = markOf(layout);
  const deadline = Date.now() + patienceMs;
  for (let found = false; ; found = true) {
    // The first process of a pid namespace is gone only when all others in there are.
    const processes = findByArgument((argument) => argument === mark);
    const killedMs = deadline - Date.now();
    await allSettled(processes.map((process) => stopProcess(process, { graceMs: 0, killedMs, polite: 'SIGKILL' })));
    const left = [
      ...(existsSync(`/sys/class/net/${layout.hostLink}`) ? [`the network interface ${layout.hostLink}`] : []),
      ...(removeCgroup(layout.cgroup) ? [] : [`the cgroup ${layout.cgroup}`]),
    ];
    if (processes.length === 0 && left.length === 0) return found;
    if (left.length > 0 && Date.now() > deadline) {
      throw new SandboxError(`What the node of ${layout.dir} has made does not go away: ${left.join(', ')}.`);
    }
    await sleep(50);
  }
}
