import { createHash } from 'node:crypto';
import { activityInfo, cancellationSignal, heartbeat } from '@temporalio/activity';
import type { ProxyRef } from '../model/proxy.ts';
import type { ProxyView } from '../model/proxy-view.ts';
import type { Verdict } from '../model/verdict.ts';
import type { FleetBreaker } from './fleet-breaker.ts';
import type { Probe } from './probe.ts';
import { type Credentials, createProbeLoop, type ProbeLoop, type ProbeMetrics, type Streak } from './probe-loop.ts';

/** Unfinished streaks by UID: all that a shard knows and the status does not. */
export type Streaks = Record<string, Streak>;

export interface ShardTerm {
  /** This shard probes the Proxies whose hashed UID is `index` modulo `count`. */
  index: number;
  count: number;
  /** Milliseconds since the epoch at which the term ends. */
  until: number;
  /** What the shard of the last term left unfinished. */
  streaks: Streaks;
}

export interface ProbeShardDeps {
  view: ProxyView;
  probe: Probe;
  /** Shared by all shards of a process, which together see more of the fleet. */
  breaker: FleetBreaker;
  credentials: Credentials;
  /** Fetched for Proxies that name no URL of their own. */
  defaultUrl: string;
  /** Probes of one shard under way at once. */
  concurrency: number;
  metrics: ProbeMetrics;
  /** Tells the Proxy's workflow; may fail, and is then called again after a later probe. */
  report(ref: ProxyRef, verdict: Verdict): Promise<void>;
  now(): number;
  warn(message: string, error: unknown): void;
}

const HEARTBEAT_MILLIS = 1_000;

export function createProbeShard(deps: ProbeShardDeps) {
  /** Probes its share of the fleet until the term ends or it is cancelled, and returns the streaks it leaves unfinished. */
  return async function probeShard({ index, count, until, streaks }: ShardTerm): Promise<Streaks> {
    // After a crash the last heartbeat knows more than what the term began with.
    const resumed = (activityInfo().heartbeatDetails as Streaks | undefined) ?? streaks;
    const cancelled = cancellationSignal();
    const loop = createProbeLoop(deps, resumed);
    const mine = (uid: string) => shardOf(uid, count) === index;
    const unsubscribe = deps.view.subscribe((proxy, change) => {
      if (!mine(proxy.metadata.uid)) return;
      if (change === 'removed') loop.forget(proxy);
      else loop.follow(proxy);
    });
    try {
      for (const proxy of deps.view.all()) if (mine(proxy.metadata.uid)) loop.follow(proxy);
      await beatUntilEnd(loop, until, cancelled, deps.now);
      return loop.streaks();
    } finally {
      unsubscribe();
      loop.stop();
    }
  };
}

async function beatUntilEnd(loop: ProbeLoop, until: number, cancelled: AbortSignal, now: () => number): Promise<void> {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const beat = setInterval(() => {
    heartbeat(loop.streaks());
    if (now() >= until) end();
  }, HEARTBEAT_MILLIS);
  cancelled.addEventListener('abort', () => end(), { once: true });
  try {
    if (!cancelled.aborted) await ended;
    heartbeat(loop.streaks());
  } finally {
    clearInterval(beat);
  }
  // On a worker's shutdown the shard must go on elsewhere, from these very streaks: fail, and be tried again.
  if (cancelled.aborted) cancelled.throwIfAborted();
}

/** Deals UIDs evenly. */
export function shardOf(uid: string, count: number): number {
  return createHash('sha256').update(uid).digest().readUInt32BE(0) % count;
}
