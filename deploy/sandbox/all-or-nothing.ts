/**
 * Runs tasks side by side. The first failure aborts the signal that all of them got; it is thrown when every task has
 * ended, so that nothing is still starting while the caller cleans up.
 */
export async function allOrNothing(
  signal: AbortSignal,
  tasks: ((signal: AbortSignal) => Promise<unknown>)[],
): Promise<void> {
  const failure = new AbortController();
  const either = AbortSignal.any([signal, failure.signal]);
  const run = async (task: (signal: AbortSignal) => Promise<unknown>) => {
    try {
      await task(either);
    } catch (error) {
      failure.abort(error);
    }
  };
  await Promise.all(tasks.map(run));
  signal.throwIfAborted();
  failure.signal.throwIfAborted();
}
