import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ProbeTarget } from '../../activities/probe.ts';
import { createProbeLoop, type ProbeLoop } from '../../activities/probe-loop.ts';
import type { Streaks } from '../../activities/probe-shard.ts';
import { type Condition, withCondition } from '../../model/condition.ts';
import { type Proxy, probeSubject } from '../../model/proxy.ts';
import type { ProbeResult, Verdict } from '../../model/verdict.ts';

const OK: ProbeResult = { ok: true, latencyMillis: 10 };
const FAIL: ProbeResult = { ok: false, latencyMillis: 10, message: 'status 503, expected 200' };

function proxy(
  changes: {
    healthy?: Condition['status'];
    incarnation?: number;
    deleting?: boolean;
    up?: boolean;
    held?: boolean;
  } = {},
): Proxy {
  const { healthy, incarnation = 1, deleting = false, up = true, held = false } = changes;
  const at = Date.now();
  const provisioned = { status: up ? ('True' as const) : ('False' as const), reason: 'Created', message: '' };
  let conditions: Condition[] = withCondition(undefined, 'Provisioned', provisioned, 1, at);
  if (healthy)
    conditions = withCondition(
      conditions,
      'Healthy',
      { status: healthy, reason: held ? 'TargetDown' : 'x', message: '' },
      1,
      at,
    );
  return {
    apiVersion: 'crawl.example.com/v1alpha1',
    kind: 'Proxy',
    metadata: {
      name: 'a',
      namespace: 'default',
      uid: 'uid-a',
      generation: 1,
      resourceVersion: '1',
      ...(deleting && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    },
    spec: { provider: 'local', health: { intervalSeconds: 30, timeoutSeconds: 10 } },
    status: { ip: '127.0.0.5', port: 3128, incarnation, conditions, ...(healthy && { latencyMillis: 10 }) },
  };
}

/** A loop over one Proxy, with the clock in hand. */
function setup(resumed: Streaks = {}) {
  let current: Proxy | undefined;
  let answer: () => Promise<ProbeResult> = async () => OK;
  const probes: ProbeTarget[] = [];
  const verdicts: Verdict[] = [];
  const counted: string[] = [];
  let reportFails = false;
  let held = false;
  const loop = createProbeLoop(
    {
      view: { synced: true, all: () => (current ? [current] : []), byUid: () => current, subscribe: () => () => {} },
      probe: (target) => {
        probes.push(target);
        return answer();
      },
      breaker: { holds: async () => held, forget: () => {} },
      credentials: () => undefined,
      defaultUrl: 'http://target.test/',
      concurrency: 4,
      metrics: {
        probed: (name, _, ok) => counted.push(`${name} ${ok}`),
        removed: (name) => counted.push(`${name} removed`),
      },
      async report(_, verdict) {
        if (reportFails) throw new Error('Temporal is away');
        verdicts.push(verdict);
      },
      now: Date.now,
      warn: () => {},
    },
    resumed,
  );
  loops.push(loop);
  return {
    loop,
    probes,
    verdicts,
    counted,
    see(next: Proxy) {
      current = next;
      loop.follow(next);
    },
    answer(next: () => Promise<ProbeResult>) {
      answer = next;
    },
    hold(down: boolean) {
      held = down;
    },
    failReports(fails: boolean) {
      reportFails = fails;
    },
  };
}

const loops: ProbeLoop[] = [];
const seconds = (count: number) => vi.advanceTimersByTimeAsync(count * 1000);

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  for (const loop of loops.splice(0)) loop.stop();
  vi.useRealTimers();
});

describe('the probe loop', () => {
  it('probes a never-probed proxy at once, then once per interval', async () => {
    const { see, probes } = setup();
    see(proxy());
    await seconds(0);
    expect(probes).toMatchObject([
      { host: '127.0.0.5', port: 3128, url: 'http://target.test/', timeoutMillis: 10_000 },
    ]);
    await seconds(29);
    expect(probes).toHaveLength(1);
    await seconds(1);
    expect(probes).toHaveLength(2);
  });

  it('spreads the first probe of a proxy with a verdict over the interval', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    const { see, probes } = setup();
    see(proxy({ healthy: 'True' }));
    await seconds(14);
    expect(probes).toHaveLength(0);
    await seconds(1);
    expect(probes).toHaveLength(1);
    vi.restoreAllMocks();
  });

  it('reports the first verdict, with what it is about', async () => {
    const { see, verdicts } = setup();
    see(proxy());
    await seconds(0);
    expect(verdicts).toMatchObject([{ healthy: true, subject: '1@127.0.0.5:3128', latencyMillis: 10 }]);
  });

  it('takes its verdict from the status after a restart, and needs the whole threshold to flip it', async () => {
    const { see, verdicts, answer } = setup();
    answer(async () => FAIL);
    see(proxy({ healthy: 'True' }));
    await seconds(30 + 30);
    expect(verdicts).toHaveLength(0);
    await seconds(30);
    expect(verdicts).toMatchObject([{ healthy: false, message: 'status 503, expected 200' }]);
  });

  it('goes on from the streak of the worker before it', async () => {
    const seen = proxy({ healthy: 'True' });
    const subject = probeSubject(seen.status) ?? '';
    const { see, verdicts, answer } = setup({ 'uid-a': { subject, healthy: true, streak: 2, streakOk: false } });
    answer(async () => FAIL);
    see(seen);
    await seconds(30);
    expect(verdicts).toMatchObject([{ healthy: false }]);
  });

  it('hands out unfinished streaks only', async () => {
    const { see, loop, answer } = setup();
    answer(async () => FAIL);
    see(proxy({ healthy: 'True' }));
    expect(loop.streaks()).toEqual({});
    await seconds(30);
    expect(loop.streaks()).toEqual({
      'uid-a': { subject: '1@127.0.0.5:3128', healthy: true, streak: 1, streakOk: false },
    });
  });

  it('starts a replaced instance with fresh counters', async () => {
    const { see, verdicts, answer } = setup();
    answer(async () => FAIL);
    see(proxy({ healthy: 'True' }));
    await seconds(60);
    see(proxy({ incarnation: 2, healthy: 'Unknown' }));
    await seconds(0);
    expect(verdicts).toEqual([]);
    await seconds(60);
    expect(verdicts).toMatchObject([{ healthy: false, subject: '2@127.0.0.5:3128' }]);
  });

  it.each([
    ['replaced', proxy({ incarnation: 2 })],
    ['deleted', proxy({ deleting: true })],
  ])('a probe in flight when its proxy is %s changes nothing', async (_, next) => {
    const { see, verdicts, counted, answer } = setup();
    const { promise, resolve } = Promise.withResolvers<ProbeResult>();
    answer(() => promise);
    see(proxy());
    await seconds(0);
    answer(() => new Promise(() => {}));
    see(next);
    resolve(OK);
    await seconds(1);
    expect(verdicts).toEqual([]);
    expect(counted.filter((line) => line.endsWith('true'))).toEqual([]);
  });

  it('drops its series and its probes when there is no address any more', async () => {
    const { see, probes, counted } = setup();
    see(proxy());
    await seconds(0);
    see(proxy({ up: false }));
    await seconds(120);
    expect(probes).toHaveLength(1);
    expect(counted).toEqual(['default/a true', 'default/a removed']);
  });

  it('repeats a report until the status has it, ever less often', async () => {
    const { see, verdicts, failReports } = setup();
    failReports(true);
    see(proxy());
    await seconds(0);
    failReports(false);
    await seconds(30);
    expect(verdicts).toHaveLength(1);
    see(proxy({ healthy: 'True' }));
    await seconds(120);
    expect(verdicts).toHaveLength(1);
  });

  it('holds its verdict while the target is down, says so once, and goes on as before', async () => {
    const { see, verdicts, answer, hold, loop } = setup();
    answer(async () => FAIL);
    hold(true);
    see(proxy({ healthy: 'True' }));
    await seconds(30);
    expect(verdicts).toMatchObject([{ healthy: true, held: true }]);
    see(proxy({ healthy: 'True', held: true }));
    await seconds(300);
    expect(verdicts).toHaveLength(1);
    expect(loop.streaks()).toEqual({});
    hold(false);
    answer(async () => OK);
    await seconds(30);
    expect(verdicts[1]).toMatchObject({ healthy: true });
    expect(verdicts[1]).not.toHaveProperty('held');
  });

  it('survives a probe that throws', async () => {
    const { see, verdicts, answer } = setup();
    answer(async () => {
      throw new Error('out of sockets');
    });
    see(proxy());
    await seconds(0);
    answer(async () => OK);
    await seconds(30);
    expect(verdicts).toHaveLength(1);
  });
});
