import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Proxy } from '../../model/proxy.ts';
import { proxyWorkflowID } from '../../model/workflow-names.ts';
import { createNudges } from '../../watcher/nudges.ts';

interface Call {
  kind: 'signal' | 'signalWithStart';
  workflowId: string;
  succeed(): void;
  fail(error: Error): void;
}

/** A Temporal whose every answer is the test's to give. */
function createScriptedClient() {
  const calls: Call[] = [];
  const open = new Map<string, number>();
  const maxOpen = new Map<string, number>();
  async function call(kind: Call['kind'], workflowId: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    calls.push({ kind, workflowId, succeed: resolve, fail: reject });
    const now = (open.get(workflowId) ?? 0) + 1;
    open.set(workflowId, now);
    maxOpen.set(workflowId, Math.max(now, maxOpen.get(workflowId) ?? 0));
    await promise.finally(() => open.set(workflowId, (open.get(workflowId) ?? 0) - 1));
  }
  const client = {
    withDeadline: <T>(_: number, run: () => Promise<T>): Promise<T> => run(),
    workflow: {
      getHandle: (workflowId: string) => ({ signal: () => call('signal', workflowId) }),
      signalWithStart: (_: string, { workflowId }: { workflowId: string }) => call('signalWithStart', workflowId),
    },
  } as unknown as Client;
  return { client, calls, maxOpen };
}

const proxy = (name: string): Proxy =>
  ({
    metadata: { name, namespace: 'default', uid: `uid-${name}`, resourceVersion: '1', generation: 1 },
    spec: { mode: 'External', endpoint: { host: '192.0.2.1', port: 3128 } },
  }) as unknown as Proxy;

const START = { start: true };
const NO_START = { start: false };

describe('nudges', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  function setUp() {
    const { client, calls, maxOpen } = createScriptedClient();
    const warnings: string[] = [];
    const nudges = createNudges({ client, taskQueue: 'test', warn: (message) => warnings.push(message) });
    /** Lets everything that is due now happen. */
    const settle = () => vi.advanceTimersByTimeAsync(0);
    return { nudges, calls, maxOpen, warnings, settle };
  }

  it('delivers a flood of changes to one Proxy as few signals, one at a time', async () => {
    const { nudges, calls, maxOpen, settle } = setUp();
    for (let round = 0; round < 100; round++) {
      nudges.nudge(proxy('a'), START);
      await settle();
    }
    expect(calls).toHaveLength(1);
    calls[0]?.succeed();
    await settle();
    // What came during the first call needs one of its own, but no more than one.
    expect(calls).toHaveLength(2);
    expect(nudges.pending).toBe(1);
    calls[1]?.succeed();
    await settle();
    expect(calls).toHaveLength(2);
    expect(nudges.pending).toBe(0);
    expect([...maxOpen.values()]).toEqual([1]);
  });

  it('delivers to other Proxies meanwhile', async () => {
    const { nudges, calls, settle } = setUp();
    nudges.nudge(proxy('a'), START);
    nudges.nudge(proxy('b'), START);
    await settle();
    expect(calls.map(({ workflowId }) => workflowId)).toEqual(
      ['a', 'b'].map((name) => proxyWorkflowID({ namespace: 'default', name, uid: `uid-${name}` })),
    );
  });

  it('tries again what failed, less and less often, until it succeeds', async () => {
    const { nudges, calls, warnings, settle } = setUp();
    nudges.nudge(proxy('a'), START);
    await settle();
    for (const [index, pause] of [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000].entries()) {
      calls[index]?.fail(new Error('unavailable'));
      await vi.advanceTimersByTimeAsync(pause - 1);
      expect(calls).toHaveLength(index + 1);
      expect(nudges.pending).toBe(1);
      await vi.advanceTimersByTimeAsync(1);
      expect(calls).toHaveLength(index + 2);
    }
    calls.at(-1)?.succeed();
    await settle();
    expect(nudges.pending).toBe(0);
    expect(warnings).toHaveLength(7);
  });

  it.each([
    { name: 'a nudge that waits', first: START, second: NO_START, failFirst: false },
    { name: 'one that waits, started by a later one', first: NO_START, second: START, failFirst: false },
    { name: 'a nudge that failed while the next one came in', first: START, second: NO_START, failFirst: true },
  ])('starts a workflow once anyone asked for it: $name', async ({ first, second, failFirst }) => {
    const { nudges, calls, settle } = setUp();
    nudges.nudge(proxy('a'), first);
    if (failFirst) await settle();
    nudges.nudge(proxy('a'), second);
    if (failFirst) calls[0]?.fail(new Error('unavailable'));
    await vi.advanceTimersByTimeAsync(500);
    expect(calls.at(-1)?.kind).toBe('signalWithStart');
    expect(calls).toHaveLength(failFirst ? 2 : 1);
  });

  it('does not start again one that only ever had to be told of a removal', async () => {
    const { nudges, calls, settle } = setUp();
    nudges.nudge(proxy('a'), START);
    await settle();
    calls[0]?.succeed();
    await settle();
    nudges.nudge(proxy('a'), NO_START);
    await settle();
    expect(calls[1]?.kind).toBe('signal');
    calls[1]?.fail(new WorkflowNotFoundError('gone', 'a', undefined));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(calls).toHaveLength(2);
    expect(nudges.pending).toBe(0);
  });

  it('waits for the call under way when it stops, so that the connection is not closed over it', async () => {
    const { nudges, calls, settle } = setUp();
    nudges.nudge(proxy('a'), START);
    await settle();
    let stopped = false;
    const stopping = nudges.stop().then(() => {
      stopped = true;
    });
    await settle();
    expect(stopped).toBe(false);
    calls[0]?.succeed();
    await stopping;
    expect(vi.getTimerCount()).toBe(0);
  });

  it('but not for ever', async () => {
    const { nudges, settle } = setUp();
    nudges.nudge(proxy('a'), START);
    await settle();
    const stopping = nudges.stop();
    await vi.advanceTimersByTimeAsync(10_000);
    await stopping;
  });

  it('tries nothing again once stopped', async () => {
    const { nudges, calls, settle } = setUp();
    nudges.nudge(proxy('a'), START);
    nudges.nudge(proxy('b'), START);
    await settle();
    calls[0]?.fail(new Error('unavailable'));
    await settle();
    void nudges.stop();
    calls[1]?.fail(new Error('unavailable'));
    nudges.nudge(proxy('c'), START);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(calls).toHaveLength(2);
    expect(vi.getTimerCount()).toBe(0);
  });
});
