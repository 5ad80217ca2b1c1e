import pLimit from 'p-limit';
import { conditionOf, HealthyReason } from '../model/condition.ts';
import { CREDENTIALS_LABEL, healthOf, isExternal, type Proxy, probeSubject, refOf } from '../model/proxy.ts';
import {
  countProbe,
  mustReport,
  type ProbeCounters,
  type ProbeResult,
  type ReportedHealth,
  type Verdict,
} from '../model/verdict.ts';
import type { ProbeTarget } from './probe.ts';
import type { ProbeShardDeps, Streaks } from './probe-shard.ts';

/** A streak against the verdict in force, and what it is about. */
export interface Streak extends ProbeCounters {
  subject: string;
}

/** Username and password of an External proxy that wants them; undefined where its Secret can't be had. */
export type Credentials = (proxy: Proxy) => { username: string; password: string } | undefined;

export interface ProbeMetrics {
  /** `proxy` is `namespace/name`. */
  probed(proxy: string, seconds: number, ok: boolean): void;
  removed(proxy: string): void;
}

export interface ProbeLoop {
  /** Starts, updates or ends the probing of a Proxy according to what it is now. */
  follow(proxy: Proxy): void;
  forget(proxy: Proxy): void;
  streaks(): Streaks;
  stop(): void;
}

interface Tracked {
  proxy: Proxy;
  subject: string;
  counters: ProbeCounters;
  timer?: NodeJS.Timeout;
  /** The last verdict sent for, and how often in a row. */
  sent: { said?: string; times: number; at: number };
}

const RESEND_MILLIS = 5_000;
const RESEND_MAX_MILLIS = 10 * 60_000;

/** Probes each Proxy it follows at its own interval. Holds no verdict of its own: those are in the status. */
export function createProbeLoop(deps: ProbeShardDeps, resumed: Streaks): ProbeLoop {
  const { view, probe, breaker, credentials, defaultUrl, concurrency, metrics, report, now, warn } = deps;
  const tracked = new Map<string, Tracked>();
  const limit = pLimit(concurrency);

  function follow(proxy: Proxy): void {
    const { uid } = proxy.metadata;
    const subject = subjectOf(proxy);
    const known = tracked.get(uid);
    if (!subject) {
      forget(proxy);
      return;
    }
    if (known?.subject === subject) {
      const before = healthOf(known.proxy.spec).intervalSeconds;
      known.proxy = proxy;
      if (healthOf(proxy.spec).intervalSeconds !== before) schedule(known, spread(proxy));
      return;
    }
    if (known) clearTimeout(known.timer);
    const { healthy } = reportedHealth(proxy);
    const streak = resumed[uid];
    delete resumed[uid];
    const counters: ProbeCounters =
      streak?.subject === subject ? streak : { ...(healthy !== undefined && { healthy }), streak: 0 };
    const entry: Tracked = { proxy, subject, counters, sent: { times: 0, at: 0 } };
    tracked.set(uid, entry);
    // One that nobody has ever probed is waited for; the others are spread out, or a restart would probe all at once.
    schedule(entry, healthy === undefined ? 0 : spread(proxy));
  }

  function forget(proxy: Proxy): void {
    const known = tracked.get(proxy.metadata.uid);
    if (!known) return;
    clearTimeout(known.timer);
    tracked.delete(proxy.metadata.uid);
    breaker.forget(proxy.metadata.uid);
    metrics.removed(labelOf(proxy));
  }

  function schedule(entry: Tracked, delay: number): void {
    clearTimeout(entry.timer);
    entry.timer = setTimeout(() => void limit(() => probeOnce(entry)), delay);
  }

  async function probeOnce(entry: Tracked): Promise<void> {
    const { uid } = entry.proxy.metadata;
    const current = () => tracked.get(uid) === entry;
    if (!current()) return;
    const started = now();
    try {
      const target = targetOf(entry.proxy);
      const result = lacksLogin(entry.proxy, target) ?? (await probe(target));
      // Its instance may have been replaced or deleted meanwhile: then this says nothing about anything.
      if (!current() || subjectOf(view.byUid(uid) ?? entry.proxy) !== entry.subject) return;
      metrics.probed(labelOf(entry.proxy), result.latencyMillis / 1000, result.ok);
      const held = await breaker.holds(uid, target.url, result.ok, target);
      if (!current()) return;
      // While the target is down, failures say nothing about proxies.
      if (!held) entry.counters = countProbe(entry.counters, result.ok, healthOf(entry.proxy.spec));
      await tell(entry, result, held);
    } catch (error) {
      warn(`Probe of ${labelOf(entry.proxy)} could not be made`, error);
    } finally {
      const interval = healthOf(entry.proxy.spec).intervalSeconds * 1000;
      if (current()) schedule(entry, Math.max(0, interval - (now() - started)));
    }
  }

  async function tell(entry: Tracked, result: ProbeResult, held: boolean): Promise<void> {
    const { proxy, subject, sent } = entry;
    const { healthy } = entry.counters;
    // A single result against the verdict in force is not yet news.
    if (healthy === undefined || (result.ok !== healthy && !held)) return;
    const { latencyMillis } = result;
    const reason = result.ok ? `Answered in ${latencyMillis} ms` : result.message;
    const verdict: Verdict = {
      subject,
      healthy,
      ...(held && healthy && { held }),
      message: held ? `The target fails without a proxy as well; holding the last verdict (${reason})` : reason,
      latencyMillis,
      checkedAt: new Date(now()).toISOString(),
    };
    if (!mustReport(verdict, reportedHealth(proxy), now())) {
      // The status has it: the next report is a first one again.
      entry.sent = { times: 0, at: 0 };
      return;
    }
    const said = `${healthy} ${held}`;
    const repeated = sent.said === said;
    if (repeated && now() - sent.at < Math.min(RESEND_MAX_MILLIS, RESEND_MILLIS * 2 ** (sent.times - 1))) return;
    entry.sent = { said, times: repeated ? sent.times + 1 : 1, at: now() };
    try {
      await report(refOf(proxy), verdict);
    } catch (error) {
      warn(`Verdict on ${labelOf(proxy)} could not be delivered; a later probe will repeat it`, error);
    }
  }

  function targetOf(proxy: Proxy): ProbeTarget {
    const { ip = '', port = 0 } = proxy.status ?? {};
    const { url = defaultUrl, expectedStatus, timeoutSeconds, caBundle } = healthOf(proxy.spec);
    const login = credentials(proxy);
    return {
      host: ip,
      port,
      url,
      expectedStatus,
      timeoutMillis: timeoutSeconds * 1000,
      ...(caBundle !== undefined && { caBundle }),
      ...(login && { credentials: login }),
    };
  }

  return {
    follow,
    forget,
    streaks: () =>
      Object.fromEntries(
        [...tracked]
          .filter(([, { counters }]) => counters.streak > 0)
          .map(([uid, { counters, subject }]) => [uid, { ...counters, subject }]),
      ),
    stop() {
      for (const { proxy } of [...tracked.values()]) forget(proxy);
    },
  };
}

const labelOf = ({ metadata: { namespace, name } }: Proxy): string => `${namespace}/${name}`;

const spread = (proxy: Proxy): number => Math.random() * healthOf(proxy.spec).intervalSeconds * 1000;

/** A proxy that wants a login that can't be had fails its probe, in words that lead to the Secret. */
function lacksLogin({ metadata, spec }: Proxy, target: ProbeTarget): ProbeResult | undefined {
  const wanted = isExternal(spec) ? spec.endpoint.credentialsSecretRef?.name : undefined;
  if (wanted === undefined || target.credentials) return undefined;
  const where = `Secret "${wanted}" in namespace ${metadata.namespace}`;
  const message = `no ${where} with the keys username and password and the label ${CREDENTIALS_LABEL}: "true"`;
  return { ok: false, latencyMillis: 0, message };
}

/** Undefined while there is nothing to probe: no address, not provisioned, or on its way out. */
function subjectOf(proxy: Proxy): string | undefined {
  if (proxy.metadata.deletionTimestamp) return undefined;
  const provisioned = conditionOf(proxy.status?.conditions, 'Provisioned');
  if (provisioned?.status !== 'True') return undefined;
  return probeSubject(proxy.status);
}

function reportedHealth({ status }: Proxy): ReportedHealth {
  const condition = conditionOf(status?.conditions, 'Healthy');
  const healthy = condition?.status === 'True' ? true : condition?.status === 'False' ? false : undefined;
  return {
    ...(healthy !== undefined && { healthy }),
    held: condition?.reason === HealthyReason.TargetDown,
    ...(status?.latencyMillis !== undefined && { latencyMillis: status.latencyMillis }),
    ...(status?.lastHealthCheckTime !== undefined && { checkedAt: Date.parse(status.lastHealthCheckTime) }),
  };
}
