/** The outcome of one probe. `latencyMillis` is the whole request through the proxy. */
export type ProbeResult = { ok: true; latencyMillis: number } | { ok: false; message: string; latencyMillis: number };

export interface Thresholds {
  successThreshold: number;
  failureThreshold: number;
}

/** What a shard remembers of one proxy between probes. */
export interface ProbeCounters {
  /** The verdict in force; undefined before the first. */
  healthy?: boolean;
  /** Consecutive results against the verdict in force (before the first: of the kind seen last). */
  streak: number;
  /** What kind the streak is of. */
  streakOk?: boolean;
}

/** The verdict flips at its threshold of consecutive results; the opposite result starts the count again. */
export function countProbe(counters: ProbeCounters, ok: boolean, thresholds: Thresholds): ProbeCounters {
  if (counters.healthy === ok) return { healthy: ok, streak: 0 };
  const streak = counters.streakOk === ok ? counters.streak + 1 : 1;
  if (streak >= (ok ? thresholds.successThreshold : thresholds.failureThreshold)) return { healthy: ok, streak: 0 };
  return { ...counters, streak, streakOk: ok };
}

/** What a probe shard tells a Proxy's workflow. */
export interface Verdict {
  /** See `probeSubject`: a verdict about another subject changes nothing. */
  subject: string;
  healthy: boolean;
  /** It is the target that is down: the verdict is the one from before. */
  held?: boolean;
  /** For people: what the probe saw. */
  message: string;
  latencyMillis: number;
  /** RFC 3339. */
  checkedAt: string;
}

export const LATENCY_STEP_MILLIS = 20;
export const LATENCY_STEP_RATIO = 0.5;
export const LATENCY_REPORT_INTERVAL_MILLIS = 60_000;

/** What the status says of a proxy's health now. */
export interface ReportedHealth {
  healthy?: boolean;
  /** See `Verdict.held`. */
  held?: boolean;
  latencyMillis?: number;
  /** Milliseconds since the epoch. */
  checkedAt?: number;
}

/**
 * Whether the status must change: the first verdict, a flip, or, while healthy, a clear change in latency at most once a
 * minute. Compares with what the status says rather than with what was sent, so that a lost report is made again.
 */
export function mustReport(
  { healthy, held = false, latencyMillis }: Pick<Verdict, 'healthy' | 'held' | 'latencyMillis'>,
  reported: ReportedHealth,
  now: number,
): boolean {
  if (reported.healthy !== healthy || (reported.held ?? false) !== held) return true;
  if (!healthy || held || reported.latencyMillis === undefined) return false;
  if (now - (reported.checkedAt ?? 0) < LATENCY_REPORT_INTERVAL_MILLIS) return false;
  const step = Math.max(LATENCY_STEP_MILLIS, reported.latencyMillis * LATENCY_STEP_RATIO);
  return Math.abs(latencyMillis - reported.latencyMillis) > step;
}
