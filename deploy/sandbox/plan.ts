import { join } from 'node:path';
import type { Addresses } from './addresses.ts';
import { startApiServer } from './api-server.ts';
import { startEtcd } from './etcd.ts';
import { nodePartNames, type PlannedNode, planNode, podProbeTarget } from './node/plan-node.ts';
import { orchestratorName, startOrchestrator } from './orchestrator.ts';
import type { Parts } from './parts.ts';
import { loopback } from './ports.ts';
import { startProbeTarget } from './probe-target.ts';
import type { Child } from './processes.ts';
import type { SandboxOptions } from './session.ts';
import { startTemporal } from './temporal.ts';

/** A part as it is to be started, the first time and whenever it died. */
export interface PlannedPart {
  name: string;
  start(signal: AbortSignal): Promise<Child>;
  /** Ports that it will listen on. */
  ports: number[];
  /** Shown beside its name when it is up. */
  where: string;
}

export interface SandboxPlan {
  etcd: PlannedPart;
  apiServer: PlannedPart;
  temporal: PlannedPart;
  probeTarget: PlannedPart;
  orchestrator: PlannedPart;
  /** What makes and serves a node for pods, in the order of its start; empty without one. */
  node: PlannedPart[];
  /** Path of kubectl. */
  kubectl: string;
}

/**
 * The orchestrator first, while what it talks to is there. The API server before etcd, without which it would wait in
 * vain to finish its work.
 */
export const stopOrder = [[orchestratorName], nodePartNames, ['kube-apiserver', 'temporal', 'probe-target'], ['etcd']];

/** What `.sandbox/env` says; the last three only when there is one. */
export type SandboxSettings = {
  KUBECONFIG: string;
  /** host:port */
  TEMPORAL_ADDRESS: string;
  TEMPORAL_UI: string;
  LEASE_API: string;
  METRICS: string;
  PROBE_TARGET_HTTP: string;
  PROBE_TARGET_HTTPS: string;
  PROBE_TARGET_CA: string;
  /** Where pods reach a probe target. */
  POD_PROBE_TARGET?: string;
  DISCOVERY_TOKEN?: string;
  ORCHESTRATOR_PID?: string;
};

/** What `.sandbox/env` says, but for the orchestrator's pid. */
export function describeSandbox(
  options: SandboxOptions,
  { ports, probeTarget }: Addresses,
  node: PlannedNode | undefined,
): SandboxSettings {
  const { paths } = options;
  return {
    KUBECONFIG: paths.kubeconfig,
    TEMPORAL_ADDRESS: `${loopback}:${ports.temporal}`,
    TEMPORAL_UI: `http://${loopback}:${ports.temporalUi}`,
    LEASE_API: `http://${loopback}:${ports.leaseApi}`,
    METRICS: `http://${loopback}:${ports.metrics}/metrics`,
    PROBE_TARGET_HTTP: `http://${probeTarget.host}:${probeTarget.httpPort}/`,
    PROBE_TARGET_HTTPS: `https://${probeTarget.host}:${probeTarget.httpsPort}/`,
    PROBE_TARGET_CA: join(paths.dir, 'probe-target', 'ca.pem'),
    ...(node ? { POD_PROBE_TARGET: podProbeTarget(node.layout, probeTarget).url } : {}),
    ...(options.discoveryToken ? { DISCOVERY_TOKEN: options.discoveryToken } : {}),
  };
}

/** Which part runs where, with which data. `orchestratorStarted` is told each new process id at once. */
export function planSandbox(
  options: SandboxOptions,
  parts: Parts,
  node: PlannedNode | undefined,
  addresses: Addresses,
  orchestratorStarted: (pid: number) => void,
): SandboxPlan {
  const { paths, hurry } = options;
  const { ports, probeTarget } = addresses;
  const urls = describeSandbox(options, addresses, node);
  const common = (name: string) => ({
    dir: join(paths.dir, name),
    logFile: join(paths.logs, `${name}.log`),
    recordDir: paths.run,
    hurry,
  });
  const etcdUrl = `http://${loopback}:${ports.etcd}`;
  const temporalPorts = {
    grpc: ports.temporal,
    http: ports.temporalHttp,
    metrics: ports.temporalMetrics,
    ui: ports.temporalUi,
  };
  const settings = {
    kubeconfig: paths.kubeconfig,
    temporalAddress: urls.TEMPORAL_ADDRESS,
    providersConfig: options.providersConfig ?? paths.providers,
    leaseApiAddress: `${loopback}:${ports.leaseApi}`,
    metricsAddress: `${loopback}:${ports.metrics}`,
    leaseDb: paths.leaseDb,
    probeUrl: urls.PROBE_TARGET_HTTP,
    probeCaFile: urls.PROBE_TARGET_CA,
    discoveryToken: options.discoveryToken,
  };
  return {
    kubectl: parts.kubectl,
    node: node ? planNode(node, { kubeconfig: paths.kubeconfig, kubectl: parts.kubectl, probeTarget, common }) : [],
    etcd: {
      name: 'etcd',
      start: (signal) => startEtcd({ ...common('etcd'), binary: parts.etcd, port: ports.etcd, signal }),
      ports: [ports.etcd],
      where: etcdUrl,
    },
    apiServer: {
      name: 'kube-apiserver',
      start: (signal) =>
        startApiServer({
          ...common('kube-apiserver'),
          binary: parts['kube-apiserver'],
          etcdUrl,
          port: ports.apiServer,
          kubeconfig: paths.kubeconfig,
          signal,
        }),
      ports: [ports.apiServer],
      where: `https://${loopback}:${ports.apiServer}`,
    },
    temporal: {
      name: 'temporal',
      start: (signal) =>
        startTemporal({
          ...common('temporal'),
          binary: parts.temporal,
          database: paths.temporalDb,
          ports: temporalPorts,
          signal,
        }),
      ports: Object.values(temporalPorts),
      where: `${urls.TEMPORAL_ADDRESS}, UI ${urls.TEMPORAL_UI}`,
    },
    probeTarget: {
      name: 'probe-target',
      start: (signal) => startProbeTarget({ ...common('probe-target'), address: probeTarget, signal }),
      ports: [probeTarget.httpPort, probeTarget.httpsPort],
      where: `${urls.PROBE_TARGET_HTTP}, ${urls.PROBE_TARGET_HTTPS}`,
    },
    orchestrator: {
      name: orchestratorName,
      start: (signal) =>
        startOrchestrator(
          {
            ...common(orchestratorName),
            run: options.orchestrator,
            squid: parts.squid,
            signal,
            // At once rather than when it is ready: scripts that inject faults need the process that is there.
            onSpawn: orchestratorStarted,
          },
          settings,
        ),
      ports: [ports.leaseApi, ports.metrics],
      where: `${urls.LEASE_API}, ${urls.METRICS}`,
    },
  };
}
