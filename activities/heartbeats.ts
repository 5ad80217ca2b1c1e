import { activityInfo, cancellationSignal, heartbeat } from '@temporalio/activity';

/** How long a cancelled call may take to notice. */
const ABANDON_MILLIS = 5_000;

/**
 * Heartbeats while a call is under way, so that a cancellation reaches it and a dead worker is noticed. A call that ignores
 * its cancellation is no longer waited for: it must not hold up a shutdown, and another attempt makes up for it.
 */
export async function whileAlive<T>(call: Promise<T>): Promise<T> {
  const signal = cancellationSignal();
  const timer = setInterval(() => heartbeat(), (activityInfo().heartbeatTimeoutMs ?? 10_000) / 3);
  const { promise: abandoned, reject: abandon } = Promise.withResolvers<never>();
  let patience: NodeJS.Timeout | undefined;
  const onCancelled = () => {
    patience = setTimeout(() => abandon(signal.reason), ABANDON_MILLIS);
  };
  signal.addEventListener('abort', onCancelled, { once: true });
  try {
    return await Promise.race([call, abandoned]);
  } finally {
    signal.removeEventListener('abort', onCancelled);
    clearTimeout(patience);
    clearInterval(timer);
  }
}
