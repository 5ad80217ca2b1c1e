/** Ctrl-C under npm arrives twice at once: from the terminal, and forwarded by npm. */
const sameRequestMs = 500;

/**
 * Calls `first` at the first request to stop (Ctrl-C, SIGTERM, a closed terminal) and `second` at the next one.
 * From then on the process ends only by itself.
 */
export function onStopRequests(handlers: { first: () => void; second: () => void }): void {
  let firstAt: number | undefined;
  const handle = () => {
    if (firstAt === undefined) {
      firstAt = Date.now();
      handlers.first();
    } else if (Date.now() - firstAt > sameRequestMs) {
      handlers.second();
    }
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, handle);
  // Whoever read our output may be gone, a closed terminal or `| head`; stopping in order matters more than the text.
  process.stdout.on('error', () => {});
  process.stderr.on('error', () => {});
}
