import { nodeLayout } from './node/layout.ts';
import { removeNode } from './node/remove-node.ts';
import type { SandboxPaths } from './paths.ts';
import { stopOrder } from './plan.ts';
import { stopLeftovers } from './processes.ts';
import { stopSquids } from './squids.ts';

/**
 * Ends what a run that was killed has left, and returns what that was, in words. Squids go only for the `host` state
 * folders given: the next start goes on with them. What does not end is thrown when everything has been seen to.
 */
export async function endKilledRun(
  paths: SandboxPaths,
  { squidsOf = [], hurry }: { squidsOf?: string[]; hurry?: AbortSignal } = {},
): Promise<string[]> {
  const ended: string[] = [];
  const steps = new AsyncDisposableStack();
  // Last in, first out: nobody starts a Squid again once the orchestrator is gone, and the node takes SIGKILL only.
  steps.defer(async () => {
    const squids = await stopSquids(squidsOf, hurry);
    if (squids > 0) ended.push(`${squids} Squid${squids === 1 ? '' : 's'}`);
  });
  steps.defer(async () => {
    ended.push(...(await stopLeftovers(paths.run, stopOrder, { hurry })));
  });
  steps.defer(async () => {
    if (await removeNode(nodeLayout(paths))) ended.push('the node');
  });
  await steps.disposeAsync();
  return ended;
}
