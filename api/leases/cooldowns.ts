/** In place of a target's name: the proxy is in cooldown for all of them. No target is called this. */
export const EVERY_TARGET = '';

/** Which proxies are kept away from which targets, and until when. Times are milliseconds since the epoch. */
export interface Cooldowns {
  /** The end of the cooldown that keeps the proxy from the target, or, without a target, from all of them. */
  until(proxyUid: string, target: string | undefined, now: number): number | undefined;
  /** Sets or, with undefined, removes one cooldown. Returns what it was, so that a failed write can be undone. */
  set(proxyUid: string, target: string, until: number | undefined): number | undefined;
  /** Frees the memory of cooldowns that are over. */
  forgetOver(now: number): void;
}

export function createCooldowns(): Cooldowns {
  const byProxy = new Map<string, Map<string, number>>();

  function set(proxyUid: string, target: string, until: number | undefined): number | undefined {
    const targets = byProxy.get(proxyUid) ?? new Map<string, number>();
    const before = targets.get(target);
    if (until === undefined) targets.delete(target);
    else targets.set(target, until);
    if (targets.size === 0) byProxy.delete(proxyUid);
    else byProxy.set(proxyUid, targets);
    return before;
  }

  return {
    until(proxyUid, target, now) {
      const targets = byProxy.get(proxyUid);
      if (!targets) return undefined;
      const everywhere = targets.get(EVERY_TARGET) ?? 0;
      const here = target === undefined ? 0 : (targets.get(target) ?? 0);
      const end = Math.max(everywhere, here);
      return end > now ? end : undefined;
    },
    set,
    forgetOver(now) {
      for (const [proxyUid, targets] of [...byProxy]) {
        for (const [target, end] of [...targets]) if (end <= now) set(proxyUid, target, undefined);
      }
    },
  };
}
