import { describe, expect, it } from 'vitest';
import { createFleetBreaker, withoutSecrets } from '../../activities/fleet-breaker.ts';

const URL = 'https://target.test/check?key=secret';
const LIKE = { expectedStatus: 200, timeoutMillis: 1_000 };

function setup() {
  let targetUp = true;
  let now = 0;
  const controls: string[] = [];
  const changes: string[] = [];
  const breaker = createFleetBreaker({
    async control(url) {
      controls.push(url);
      return targetUp ? { ok: true, latencyMillis: 1 } : { ok: false, latencyMillis: 1, message: 'refused' };
    },
    now: () => now,
    onChange: (url, down) => changes.push(`${url} ${down ? 'down' : 'up'}`),
  });
  return {
    breaker,
    controls,
    changes,
    target(up: boolean) {
      targetUp = up;
      now += 60_000;
    },
    /** One round of probes: `s` succeeds, `f` fails. Which verdicts hold. */
    async round(results: string): Promise<string> {
      const held: string[] = [];
      for (const [index, result] of [...results].entries()) {
        held.push((await breaker.holds(`uid-${index}`, URL, result === 's', LIKE)) ? 'h' : '-');
      }
      return held.join('');
    },
  };
}

describe('the fleet breaker', () => {
  it('asks the target directly only when most of the fleet fails', async () => {
    const { round, controls } = setup();
    expect(await round('ssssff')).toBe('------');
    expect(controls).toEqual([]);
  });

  it('holds verdicts while the target is down, and says so without what may be secret', async () => {
    const { round, target, changes } = setup();
    await round('ssss');
    target(false);
    // The first ones fail before there is a majority.
    expect(await round('ffff')).toBe('-hhh');
    expect(await round('ffff')).toBe('hhhh');
    expect(changes).toEqual(['https://target.test/check down']);
    target(true);
    expect(await round('ssss')).toBe('----');
    expect(changes).toEqual(['https://target.test/check down', 'https://target.test/check up']);
  });

  it('holds nothing when the target answers: then it is the proxies', async () => {
    const { round, controls, changes } = setup();
    expect(await round('ffff')).toBe('----');
    expect(controls.length).toBeGreaterThan(0);
    expect(changes).toEqual([]);
  });

  it('makes one control probe for a whole round', async () => {
    const { round, target, controls } = setup();
    target(false);
    await round('ffffffff');
    expect(controls).toHaveLength(1);
  });

  it('does not take one or two proxies for a fleet', async () => {
    const { round, target, controls } = setup();
    target(false);
    expect(await round('ff')).toBe('--');
    expect(controls).toEqual([]);
  });

  it('forgets proxies that are gone, and a URL with its last one', async () => {
    const { breaker, round, target, changes } = setup();
    target(false);
    await round('fff');
    for (const uid of ['uid-0', 'uid-1', 'uid-2']) breaker.forget(uid);
    expect(changes.at(-1)).toBe('https://target.test/check up');
    expect(await round('f')).toBe('-');
  });
});

it('shows URLs without query and login', () => {
  expect(withoutSecrets('http://user:pass@target.test:8080/a/b?token=1')).toBe('http://target.test:8080/a/b');
});
