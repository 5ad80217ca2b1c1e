import { setTimeout as sleep } from 'node:timers/promises';

const PATIENCE_MILLIS = 2_000;

/**
 * Waits a moment for calls of Temporal's client before its connection is closed: one that fails then is tried again by a timer of
 * the client's own, on a channel that is no more, and that nobody catches.
 */
export async function settled(calls: Promise<unknown>[]): Promise<void> {
  const late = new AbortController();
  await Promise.race([
    Promise.allSettled(calls),
    sleep(PATIENCE_MILLIS, undefined, { signal: late.signal }).catch(() => {}),
  ]);
  late.abort();
}
