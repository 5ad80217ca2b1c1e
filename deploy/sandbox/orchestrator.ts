import { dirname } from 'node:path';
import type { PartOptions } from './etcd.ts';
import { httpGet } from './http-get.ts';
import { projectRoot } from './paths.ts';
import { type Child, startChild } from './processes.ts';
import { withoutTemporalSettings } from './temporal.ts';

/** The product itself, as its command line takes it. */
export interface OrchestratorSettings {
  kubeconfig: string;
  temporalAddress: string;
  providersConfig: string;
  /** host:port */
  leaseApiAddress: string;
  /** host:port */
  metricsAddress: string;
  leaseDb: string;
  probeUrl: string;
  probeCaFile: string;
  discoveryToken: string | undefined;
}

/** Which program runs: `node worker/main.ts`, or a stand-in in a trial. */
export interface OrchestratorCommand {
  command: string;
  args: string[];
}

export const orchestratorName = 'orchestrator';

/** Starts the orchestrator; ready means that it says so itself. */
export function startOrchestrator(
  options: Omit<PartOptions, 'binary' | 'dir'> & { logFile: string; run: OrchestratorCommand; squid: string },
  settings: OrchestratorSettings,
): Promise<Child> {
  const { logFile, run, squid, recordDir, signal, onSpawn, hurry } = options;
  const answers = async (url: string, abort: AbortSignal) => (await httpGet(url, { signal: abort })).status === 200;
  return startChild({
    name: orchestratorName,
    command: run.command,
    args: run.args,
    cwd: projectRoot,
    env: {
      ...withoutTemporalSettings(process.env),
      // The Squid that was found, or just installed, need not be on the user's PATH.
      PATH: `${process.env.PATH ?? ''}:${dirname(squid)}`,
      KUBECONFIG: settings.kubeconfig,
      TEMPORAL_ADDRESS: settings.temporalAddress,
      PROVIDERS_CONFIG: settings.providersConfig,
      LEASE_API_ADDRESS: settings.leaseApiAddress,
      METRICS_ADDRESS: settings.metricsAddress,
      LEASE_DB: settings.leaseDb,
      PROBE_URL: settings.probeUrl,
      PROBE_CA_FILE: settings.probeCaFile,
      ...(settings.discoveryToken ? { DISCOVERY_TOKEN: settings.discoveryToken } : {}),
    },
    logFile,
    ready: (abort) => answers(`http://${settings.metricsAddress}/readyz`, abort),
    // The orchestrator gives itself 30 s, then says what hung.
    stopGraceMs: 32_000,
    recordDir,
    signal,
    onSpawn,
    hurry,
  });
}
