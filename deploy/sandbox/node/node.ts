import { dirname, join } from 'node:path';
import type { PartOptions } from '../etcd.ts';
import type { Kubectl } from '../kubectl.ts';
import { type Child, startChild } from '../processes.ts';
import { createCgroup } from './cgroups.ts';
import { writeNodeConfig } from './config-files.ts';
import { type NodeLayout, nodeName } from './layout.ts';
import { deletePods, forgetNode, isNodeReady } from './node-object.ts';
import { markOf, removeNode } from './remove-node.ts';
import { pauseImage, squidImage } from './squid-image.ts';

export interface NodeOptions extends Omit<PartOptions, 'binary' | 'dir'> {
  logFile: string;
  layout: NodeLayout;
  kubelet: string;
  containerd: string;
  imageArchive: string;
  kubectl: Kubectl;
  kubeconfig: string;
}

/**
 * Starts kubelet and containerd, in namespaces of their own (see enter.sh). Ready means that pods can be scheduled: so
 * the scheduler and the controller manager must run.
 */
export async function startNode(options: NodeOptions): Promise<Child> {
  const { layout, kubectl, logFile, recordDir, signal, onSpawn, hurry } = options;
  // One that was killed is gone only when the kernel is done with its namespaces.
  await removeNode(layout);
  await forgetNode(kubectl, signal);
  writeNodeConfig(layout);
  createCgroup(layout.cgroup);
  const namespaces = ['--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const child = await startChild({
    name: 'node',
    command: 'unshare',
    args: [...namespaces, '--', '/bin/bash', join(import.meta.dirname, 'enter.sh'), markOf(layout)],
    env: entryEnvironment(options),
    logFile,
    ready: (abort) => isNodeReady(kubectl, abort),
    // The pods are gone by then, and `unshare` takes no notice of anything gentler. Nothing in there outlives it.
    stopGraceMs: 0,
    recordDir,
    signal,
    onSpawn,
    hurry,
  });
  let stopped: Promise<void> | undefined;
  return {
    ...child,
    stop(hurry) {
      stopped ??= deletePods(kubectl, hurry).then(() => child.stop(hurry));
      return stopped;
    },
  };
}

function entryEnvironment({ layout, kubelet, containerd, imageArchive, kubeconfig }: NodeOptions): NodeJS.ProcessEnv {
  return {
    PATH: `${dirname(containerd)}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
    HOST_LINK: layout.hostLink,
    HOST_ADDRESS: layout.hostAddress,
    NODE_ADDRESS: layout.nodeAddress,
    POD_NETWORK: layout.podNetwork,
    CONTAINERD_CONFIG: layout.containerdConfig,
    CONTAINERD_SOCKET: layout.containerdSocket,
    IMAGES: `${squidImage} ${pauseImage}`,
    IMAGE_ARCHIVE: imageArchive,
    KUBELET: kubelet,
    KUBELET_CONFIG: layout.kubeletConfig,
    KUBELET_STATE: layout.kubeletState,
    KUBECONFIG: kubeconfig,
    NODE_NAME: nodeName,
  };
}
