/** What went wrong, in words for the person at the terminal: printed without a stack trace. */
export class SandboxError extends Error {
  override readonly name = 'SandboxError';
  /** What the process should exit with. */
  readonly exitCode: number;

  constructor(message: string, options: { exitCode?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.exitCode = options.exitCode ?? 1;
  }
}

/** Everything that went wrong, in the order in which it did: a cleanup that fails as well doesn't replace its reason. */
export function failuresIn(error: unknown): unknown[] {
  if (error instanceof SuppressedError) return [...failuresIn(error.suppressed), ...failuresIn(error.error)];
  return error instanceof AggregateError ? error.errors.flatMap(failuresIn) : [error];
}

/** The text to show for anything thrown: our own errors as they are, the unexpected ones with their stack. */
export const describeFailure = (error: unknown): string => failuresIn(error).map(describe).join('\n');

function describe(error: unknown): string {
  if (error instanceof SandboxError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
