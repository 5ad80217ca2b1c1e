import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Proxy, refOf } from '../../../model/proxy.ts';
import { proxyWorkflowID } from '../../../model/workflow-names.ts';
import { startWatcher } from '../../../watcher/watcher.ts';
import { connectTemporal, type Temporal } from '../../../worker/temporal-connection.ts';
import { eventually, IMPATIENT, startWatchedFleet } from './watched-fleet.ts';

describe('a workflow is nudged', () => {
  let connection: Temporal;
  beforeAll(async () => {
    connection = await connectTemporal(inject('temporalAddress'), false);
  });
  afterAll(() => connection.close());

  /** Signals that the Proxy's workflow has been sent; no worker runs here, so they pile up. */
  async function nudgesOf(proxy: Proxy): Promise<number> {
    const { events } = await connection.client.workflow.getHandle(proxyWorkflowID(refOf(proxy))).fetchHistory();
    return (events ?? []).filter((event) => event.workflowExecutionSignaledEventAttributes).length;
  }

  it('of an edit, a deletion and a creation that happened while the watch was half open', async () => {
    await using fleet = await startWatchedFleet();
    await using stack = new AsyncDisposableStack();
    const [edited, deleted, same] = (await Promise.all(
      ['edited', 'deleted', 'same'].map((name) => fleet.create(name)),
    )) as [Proxy, Proxy, Proxy];
    const cache = await fleet.watch(IMPATIENT);
    const { kubeConfig, namespace, warn } = fleet;
    const watcher = startWatcher({
      ...IMPATIENT,
      kubeConfig,
      namespace,
      warn,
      cache,
      client: connection.client,
      taskQueue: 'nobody-works-here',
      probeShards: 1,
      resyncMillis: 600_000,
    });
    stack.defer(() => watcher.stop());
    for (const proxy of [edited, deleted, same]) await eventually(async () => expect(await nudgesOf(proxy)).toBe(1));

    fleet.gate.blackHole();
    await fleet.edit('edited', { edit: 'missed' });
    await fleet.remove('deleted');
    const created = await fleet.create('created');
    await fleet.gate.pass();

    for (const proxy of [edited, deleted]) await eventually(async () => expect(await nudgesOf(proxy)).toBe(2));
    await eventually(async () => expect(await nudgesOf(created)).toBe(1));
    // A list brings back what is known already: that is no news.
    expect(await nudgesOf(same)).toBe(1);
    expect(watcher.pending).toBe(0);
  });
});
