import { setTimeout as sleep } from 'node:timers/promises';
import { describeFailure } from './failure.ts';
import type { Child } from './processes.ts';
import { elapsed } from './progress.ts';

export interface Supervised {
  readonly name: string;
  /** Ends the supervision, then the child. */
  stop(hurry?: AbortSignal): Promise<void>;
}

const firstDelayMs = 1_000;
const longestDelayMs = 30_000;
/** Serving for this long counts as healthy: the next death starts again at the first delay. */
const steadyMs = 10_000;

/**
 * Starts a child again whenever it ends by itself, as a Deployment would: after 1 s, doubling up to 30 s while it keeps
 * dying. `start` is called with a signal that aborts when the supervision ends, and must leave nothing behind then.
 */
export function supervise(
  first: Child,
  start: (signal: AbortSignal) => Promise<Child>,
  say: (text: string) => void,
): Supervised {
  const { name } = first;
  const ended = new AbortController();
  let current: Child | undefined = first;

  const watch = async () => {
    let delay = firstDelayMs;
    for (;;) {
      const since = Date.now();
      const how = await current?.exited;
      if (ended.signal.aborted) return;
      if (current && Date.now() - since >= steadyMs) delay = firstDelayMs;
      if (current)
        say(`${name} (process ${current.pid}) ended unexpectedly (${how}); starting it again in ${elapsed(delay)}`);
      current = undefined;
      await sleep(delay, undefined, { signal: ended.signal }).catch(() => undefined);
      if (ended.signal.aborted) return;
      delay = Math.min(delay * 2, longestDelayMs);
      try {
        current = await start(ended.signal);
        say(`${name} is up again (process ${current.pid})`);
      } catch (error) {
        if (!ended.signal.aborted) say(`${describeFailure(error)}\n${name}: trying again in ${elapsed(delay)}`);
      }
    }
  };
  const watching = watch();

  return {
    name,
    async stop(hurry) {
      ended.abort();
      await current?.stop(hurry);
      // A start that was under way has been told to clean up; it may even have just succeeded.
      await watching;
      await current?.stop(hurry);
    },
  };
}
