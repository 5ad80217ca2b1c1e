import type { TestProject } from 'vitest/node';
import { startRealServers } from './real-servers.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Path of a kubeconfig whose API server knows our resources. */
    kubeconfig: string;
    /** host:port of a Temporal server that knows our search attributes. */
    temporalAddress: string;
  }
}

/** One API server and one Temporal server for all the suites that only need them to be there. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { kubeconfig, temporalAddress, stop } = await startRealServers();
  project.provide('kubeconfig', kubeconfig);
  project.provide('temporalAddress', temporalAddress);
  return stop;
}
