import { setTimeout as sleep } from 'node:timers/promises';

/** Polls until `check` returns true, or `stop` aborts: then it rejects with the signal's reason. */
export async function waitUntil(check: (signal: AbortSignal) => Promise<boolean>, stop: AbortSignal): Promise<void> {
  for (;;) {
    stop.throwIfAborted();
    if (await check(stop).catch(() => false)) return;
    await sleep(50, undefined, { signal: stop }).catch(() => undefined);
  }
}
