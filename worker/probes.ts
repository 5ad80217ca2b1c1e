import { readFileSync } from 'node:fs';
import { createFleetBreaker } from '../activities/fleet-breaker.ts';
import { createProbeActivities } from '../activities/index.ts';
import { createControlProbe, createProbe } from '../activities/probe.ts';
import { proxyWorkflowID, VERDICT } from '../model/workflow-names.ts';
import { StartError } from './start-error.ts';
import type { WorkerServiceDeps } from './worker-service.ts';

const VERDICT_CALL_MILLIS = 10_000;

/**
 * The probe shards, as this process is set up to run them.
 * @throws StartError when there is no URL to probe, or the CA file can't be read
 */
export function probeActivities({ settings, temporal, cache, credentials, metrics, logger }: WorkerServiceDeps) {
  const { probeUrl, probeCaFile, probeConcurrency } = settings;
  if (!probeUrl)
    throw new StartError('PROBE_URL is not set: say what probes shall fetch through Proxies without a spec.health.url');
  const ca = probeCaFile ? readCa(probeCaFile) : undefined;
  return createProbeActivities({
    view: cache,
    probe: createProbe(ca),
    breaker: createFleetBreaker({
      control: createControlProbe(ca),
      now: Date.now,
      onChange(url, down) {
        logger.warn({ url }, down ? 'THE PROBE TARGET IS DOWN: verdicts hold' : 'the probe target is back');
        metrics.targetDown(url, down);
      },
    }),
    credentials: (proxy) => credentials.of(proxy),
    defaultUrl: probeUrl,
    concurrency: probeConcurrency,
    metrics: metrics.probes,
    report: (ref, verdict) =>
      temporal.client.withDeadline(Date.now() + VERDICT_CALL_MILLIS, () =>
        temporal.client.workflow.getHandle(proxyWorkflowID(ref)).signal(VERDICT, verdict),
      ),
    now: Date.now,
    warn: (message, error) => logger.warn({ err: error }, message),
  });
}

function readCa(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new StartError(`Can't read PROBE_CA_FILE ${path}: ${(error as Error).message}`);
  }
}
