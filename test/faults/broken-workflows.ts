export { probes } from '../../workflows/index.ts';

/** What a bad deploy looks like: a bug that no workflow can catch. */
export async function proxy(): Promise<void> {
  throw new TypeError("Cannot read properties of undefined (reading 'spec')");
}
