import { describe, expect, it } from 'vitest';
import { countProbe, mustReport, type ProbeCounters, type ReportedHealth } from '../../model/verdict.ts';

const THRESHOLDS = { successThreshold: 2, failureThreshold: 3 };

/** The verdicts after each result: + healthy, - unhealthy, ? none yet. */
function verdicts(results: string, start: ProbeCounters = { streak: 0 }): string {
  let counters = start;
  return [...results]
    .map((result) => {
      counters = countProbe(counters, result === 's', THRESHOLDS);
      return counters.healthy === undefined ? '?' : counters.healthy ? '+' : '-';
    })
    .join('');
}

describe('countProbe', () => {
  it.each([
    ['the first verdict needs its threshold: success', 'ss', '?+'],
    ['the first verdict needs its threshold: failure', 'fff', '??-'],
    ['the opposite result resets the counter before the first verdict', 'sfsfss', '?????+'],
    ['healthy flips after three failures in a row', 'ssfff', '?+++-'],
    ['a success in between resets the counter', 'ssffsffsfff', '?+++++++++-'],
    ['unhealthy flips after two successes in a row', 'fffss', '??--+'],
    ['a failure in between resets that counter too', 'fffsfss', '??----+'],
  ])('%s', (_, results, expected) => {
    expect(verdicts(results)).toBe(expected);
  });

  it('goes on from a verdict that it is given', () => {
    expect(verdicts('ffs', { healthy: true, streak: 0 })).toBe('+++');
    expect(verdicts('f', { healthy: true, streak: 2, streakOk: false })).toBe('-');
  });
});

describe('mustReport', () => {
  const now = Date.parse('2026-01-01T00:10:00Z');
  const reported = (latencyMillis: number, agoMillis = 120_000): ReportedHealth => ({
    healthy: true,
    latencyMillis,
    checkedAt: now - agoMillis,
  });

  it.each<[string, boolean, number, ReportedHealth, boolean]>([
    ['the first verdict', true, 10, {}, true],
    ['the first verdict, unhealthy', false, 10, {}, true],
    ['a flip', false, 10, reported(10), true],
    ['a flip, however soon', false, 10, reported(10, 100), true],
    ['no change', true, 10, reported(10), false],
    ['latency up by 20 ms is not more than 20 ms', true, 30, reported(10), false],
    ['latency up by 21 ms', true, 31, reported(10), true],
    ['still healthy, but held while the target is down', true, 10, { ...reported(10), held: true }, true],
    ['latency down by half is not more than half', true, 100, reported(200), false],
    ['latency down by more than half', true, 99, reported(200), true],
    ['a latency change within a minute of the last report', true, 500, reported(10, 59_000), false],
    ['a latency change while unhealthy', false, 500, { healthy: false, latencyMillis: 10, checkedAt: 0 }, false],
  ])('%s', (_, healthy, latency, before, expected) => {
    expect(mustReport({ healthy, latencyMillis: latency }, before, now)).toBe(expected);
  });
});
