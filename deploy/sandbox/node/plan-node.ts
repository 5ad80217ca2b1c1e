import type { PartOptions } from '../etcd.ts';
import { createKubectl } from '../kubectl.ts';
import type { NodeParts } from '../parts.ts';
import type { PlannedPart } from '../plan.ts';
import { type ProbeTargetAddress, startProbeTarget } from '../probe-target.ts';
import { startControllerManager, startScheduler } from './control-plane.ts';
import type { NodeLayout } from './layout.ts';
import { startNode } from './node.ts';

/** The parts of a node, by name; they are stopped after the orchestrator and before the API server. */
export const nodePartNames = ['pod-probe-target', 'node', 'kube-scheduler', 'kube-controller-manager'];

/** What a node is made of, and where. */
export interface PlannedNode {
  parts: NodeParts;
  layout: NodeLayout;
}

/** A second probe target, at the only address that pods reach; on the ports of the first. */
export function podProbeTarget(
  { hostAddress: host }: NodeLayout,
  { httpPort, httpsPort }: ProbeTargetAddress,
): { address: ProbeTargetAddress; url: string } {
  return { address: { host, httpPort, httpsPort }, url: `http://${host}:${httpPort}/` };
}

/** What a node for pods consists of, in the order of its start. */
export function planNode(
  { parts, layout }: PlannedNode,
  surroundings: {
    kubeconfig: string;
    /** Path of it. */
    kubectl: string;
    /** The probe target of everybody else. */
    probeTarget: ProbeTargetAddress;
    common: (name: string) => Pick<PartOptions, 'dir' | 'recordDir' | 'hurry'> & { logFile: string };
  },
): PlannedPart[] {
  const { kubeconfig, kubectl, common } = surroundings;
  const target = podProbeTarget(layout, surroundings.probeTarget);
  return [
    {
      name: 'kube-scheduler',
      start: (signal) =>
        startScheduler({ ...common('kube-scheduler'), binary: parts['kube-scheduler'], kubeconfig, signal }),
      ports: [],
      where: '',
    },
    {
      name: 'kube-controller-manager',
      start: (signal) =>
        startControllerManager({
          ...common('kube-controller-manager'),
          binary: parts['kube-controller-manager'],
          kubeconfig,
          signal,
        }),
      ports: [],
      where: '',
    },
    {
      name: 'node',
      start: (signal) =>
        startNode({
          ...common('node'),
          layout,
          kubelet: parts.kubelet,
          containerd: parts.containerd,
          imageArchive: parts['squid-image'],
          kubectl: createKubectl(kubectl, kubeconfig),
          kubeconfig,
          signal,
        }),
      ports: [],
      where: `pods in ${layout.podNetwork}; no kubectl logs or exec: their logs are in ${layout.podLogs}`,
    },
    {
      name: 'pod-probe-target',
      start: (signal) =>
        startProbeTarget({ ...common('pod-probe-target'), name: 'pod-probe-target', address: target.address, signal }),
      ports: [],
      where: target.url,
    },
  ];
}
