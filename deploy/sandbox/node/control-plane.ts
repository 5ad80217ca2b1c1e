import type { PartOptions } from '../etcd.ts';
import { type Child, startChild } from '../processes.ts';

interface ControlPlanePartOptions extends PartOptions {
  logFile: string;
  kubeconfig: string;
}

/**
 * The controllers that a node and its pods need. Without the first, a node keeps the taint `not-ready` for ever; the next
 * two let go of pods whose node is lost.
 */
const controllers = [
  'node-lifecycle-controller',
  'taint-eviction-controller',
  'pod-garbage-collector-controller',
  'namespace-controller',
  'resourcequota-controller',
];

export const startScheduler = ({ kubeconfig, ...options }: ControlPlanePartOptions): Promise<Child> =>
  start('kube-scheduler', options, [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
  ]);

export const startControllerManager = ({ kubeconfig, ...options }: ControlPlanePartOptions): Promise<Child> =>
  start('kube-controller-manager', options, [`--kubeconfig=${kubeconfig}`, `--controllers=${controllers.join(',')}`]);

function start(name: string, options: Omit<ControlPlanePartOptions, 'kubeconfig'>, args: string[]): Promise<Child> {
  const { binary, logFile, recordDir, signal, onSpawn, hurry } = options;
  return startChild({
    name,
    command: binary,
    // There is one of each, and nobody asks it for anything.
    args: [...args, '--leader-elect=false', '--secure-port=0'],
    logFile,
    // It says nothing of itself; that the node becomes ready is the proof that all of them work.
    ready: async () => true,
    recordDir,
    signal,
    onSpawn,
    hurry,
  });
}
