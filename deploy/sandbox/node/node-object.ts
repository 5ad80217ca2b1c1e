import type { Kubectl } from '../kubectl.ts';
import { nodeName } from './layout.ts';

/** The part of a Node that tells whether it takes pods. */
interface NodeObject {
  spec: { taints?: unknown[] };
  status: { conditions: { type: string; status: string }[] };
}

export async function isNodeReady(kubectl: Kubectl, signal: AbortSignal): Promise<boolean> {
  const json = await kubectl(['get', 'node', nodeName, '--output=json'], 'kubectl get node', signal);
  const { spec, status } = JSON.parse(json) as NodeObject;
  return status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True') && !spec.taints;
}

/**
 * For a node that has ended: what it said of itself is no longer true, and its pods have ended with it. kubelet would
 * start them again, each under whatever address is free: they would be other instances that pass for the old ones.
 */
export async function forgetNode(kubectl: Kubectl, signal: AbortSignal | undefined): Promise<void> {
  const pods = ['delete', 'pods', '--all', '--all-namespaces', '--force', '--grace-period=0', '--wait=false'];
  await kubectl(pods, 'deleting the pods of a node that has ended', signal);
  await kubectl(['delete', 'node', nodeName, '--ignore-not-found'], 'deleting a node that has ended', signal);
}

/** Deletes all pods, while there is a node to let them go. What does not go in time ends with the node. */
export async function deletePods(kubectl: Kubectl, hurry: AbortSignal | undefined): Promise<void> {
  const args = ['delete', 'pods', '--all', '--all-namespaces', '--timeout=20s'];
  await kubectl(args, 'deleting the pods', hurry).catch(() => undefined);
}
