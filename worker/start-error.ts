/** Why the process can't start, in words that name the place and the way out. Shown without a stack. */
export class StartError extends Error {
  override readonly name = 'StartError';
}
