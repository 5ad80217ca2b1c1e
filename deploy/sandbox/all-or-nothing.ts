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

/** Waits until every promise is settled, whatever becomes of the others, and then rejects with all that failed. */
export async function allSettled<const Promises extends readonly Promise<unknown>[]>(promises: Promises) {
  const results = await Promise.allSettled(promises);
  const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  if (failures.length > 0) throw new AggregateError(failures);
  return Promise.all(promises);
}
