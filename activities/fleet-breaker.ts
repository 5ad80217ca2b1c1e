import type { ProbeResult } from '../model/verdict.ts';
import type { Expectation } from './probe.ts';

export interface FleetBreakerOptions {
  /** Fetches the URL without any proxy, with what one of its proxies expects of it. */
  control(url: string, like: Expectation): Promise<ProbeResult>;
  now(): number;
  /** For the metric; the URL is without what may be secret in it. */
  onChange(url: string, down: boolean): void;
}

/** Tells "the target is down" from "the proxies are down", for each URL that is probed. */
export interface FleetBreaker {
  /**
   * Notes a probe's result, and says whether the verdict on that proxy must hold: most of the fleet fails on this URL, and
   * so does a direct probe.
   */
  holds(uid: string, url: string, ok: boolean, like: Expectation): Promise<boolean>;
  forget(uid: string): void;
}

/** With fewer proxies on a URL, "most of the fleet" says nothing. */
const LEAST_PROXIES = 3;
const MOST = 0.5;
/** How long the answer to a control probe stands. */
const CONTROL_MILLIS = 5_000;

interface UrlState {
  /** The last result of each proxy that is probed with this URL. */
  results: Map<string, boolean>;
  /** `until`: how long the answer stands, once it is there. */
  control?: { until: number; down: Promise<boolean> };
  down: boolean;
}

export function createFleetBreaker({ control, now, onChange }: FleetBreakerOptions): FleetBreaker {
  const urls = new Map<string, UrlState>();

  function stateOf(url: string): UrlState {
    const known = urls.get(url);
    if (known) return known;
    const state: UrlState = { results: new Map(), down: false };
    urls.set(url, state);
    return state;
  }

  function mostFail({ results }: UrlState): boolean {
    if (results.size < LEAST_PROXIES) return false;
    const failing = [...results.values()].filter((ok) => !ok).length;
    return failing / results.size >= MOST;
  }

  /** One control probe serves all the probes that fail while it is under way, and a little longer. */
  function isDown(url: string, state: UrlState, like: Expectation): Promise<boolean> {
    if (state.control && state.control.until >= now()) return state.control.down;
    const running = { until: Number.POSITIVE_INFINITY, down: control(url, like).then(({ ok }) => !ok) };
    state.control = running;
    void running.down.finally(() => {
      running.until = now() + CONTROL_MILLIS;
    });
    return running.down;
  }

  function note(url: string, state: UrlState, down: boolean): void {
    if (state.down === down) return;
    state.down = down;
    onChange(withoutSecrets(url), down);
  }

  function forgetFrom(uid: string, except?: UrlState): void {
    for (const [url, state] of urls) {
      if (state === except || !state.results.delete(uid) || state.results.size > 0) continue;
      note(url, state, false);
      urls.delete(url);
    }
  }

  return {
    async holds(uid, url, ok, like) {
      const state = stateOf(url);
      forgetFrom(uid, state);
      state.results.set(uid, ok);
      if (ok || !mostFail(state)) {
        // A proxy that gets through proves that the target is there.
        if (ok) note(url, state, false);
        return false;
      }
      const down = await isDown(url, state, like);
      note(url, state, down);
      return down;
    },
    forget: (uid) => forgetFrom(uid),
  };
}

/** Queries and logins of URLs are nobody's business. */
export function withoutSecrets(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}
