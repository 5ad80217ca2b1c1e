import { createHash } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { SandboxPaths } from '../paths.ts';

/** Where the node's things are, on disk and in the host's network. */
export interface NodeLayout {
  /** Folder of everything that the node writes. */
  dir: string;
  containerdConfig: string;
  containerdSocket: string;
  kubeletConfig: string;
  /** Folder of kubelet's own state. */
  kubeletState: string;
  cniConfigs: string;
  resolvConf: string;
  podLogs: string;
  /** Network interface of the host: its end of the link to the node's network. At most 15 characters. */
  hostLink: string;
  /** Addresses of the two ends, in one /30. Pods reach the host at the first, and nothing else. */
  hostAddress: string;
  nodeAddress: string;
  podNetwork: string;
  /** Below the root of each cgroup hierarchy. */
  cgroup: string;
}

/** Name of the Node object. */
export const nodeName = 'sandbox';

/**
 * Everything follows from the state folder, so that a later run finds what an earlier one left. The first sandbox of a
 * machine has 10.77.0.0/16; others, and those of a machine that is itself in that network, have another one.
 */
export function nodeLayout({ dir: stateDir, isDefault }: Pick<SandboxPaths, 'dir' | 'isDefault'>): NodeLayout {
  const dir = join(stateDir, 'node');
  const digest = createHash('sha256').update(stateDir).digest();
  const id = digest.toString('hex').slice(0, 8);
  const hostLink = `egress-${id}`;
  const preferred = isDefault ? '10.77' : `10.${128 + ((digest[0] ?? 0) % 100)}`;
  const net = firstFree([preferred, '10.78', '10.79', '10.80'], hostLink);
  return {
    dir,
    containerdConfig: join(dir, 'containerd.toml'),
    containerdSocket: join(dir, 'containerd.sock'),
    kubeletConfig: join(dir, 'kubelet.yaml'),
    kubeletState: join(dir, 'kubelet'),
    cniConfigs: join(dir, 'cni'),
    resolvConf: join(dir, 'resolv.conf'),
    podLogs: join(dir, 'pod-logs'),
    hostLink,
    hostAddress: `${net}.0.1`,
    nodeAddress: `${net}.0.2`,
    podNetwork: `${net}.1.0/24`,
    cgroup: `egress-${id}`,
  };
}

/** The first network that no interface of the host has an address in, but for a link that is ours already. */
function firstFree(networks: string[], ownLink: string): string {
  const taken = Object.entries(networkInterfaces())
    .filter(([name]) => name !== ownLink)
    .flatMap(([, addresses = []]) => addresses.map(({ address }) => address));
  const free = networks.find((network) => !taken.some((address) => address.startsWith(`${network}.`)));
  return free ?? networks[0] ?? '10.77';
}
