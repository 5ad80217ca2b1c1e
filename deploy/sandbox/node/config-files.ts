import { copyFileSync, mkdirSync } from 'node:fs';
import { stringify } from 'yaml';
import { replaceFile } from '../write-file.ts';
import type { NodeLayout } from './layout.ts';
import { pauseImage } from './squid-image.ts';

/** Writes what containerd, the CNI plugins and kubelet read. */
export function writeNodeConfig(layout: NodeLayout): void {
  mkdirSync(layout.dir, { recursive: true });
  replaceFile(layout.containerdConfig, containerdConfig(layout));
  replaceFile(`${layout.cniConfigs}/pods.conflist`, JSON.stringify(cniConfig(layout), null, 2));
  replaceFile(layout.kubeletConfig, stringify(kubeletConfig(layout)));
  // The original may be a link into /run, which the node has its own of.
  copyFileSync('/etc/resolv.conf', layout.resolvConf);
}

function containerdConfig({ dir, containerdSocket, cniConfigs }: NodeLayout): string {
  const text = JSON.stringify;
  return `version = 2
root = ${text(`${dir}/containerd`)}
# The node's own /run, not the host's.
state = "/run/containerd"
# The first would make /opt/containerd; the others are for file systems that nobody here has.
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = ${text(containerdSocket)}
[plugins."io.containerd.grpc.v1.cri"]
  # Inside a container that may not, lowering the score would fail every pod.
  restrict_oom_score_adj = true
  sandbox_image = ${text(pauseImage)}
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = ${text(cniConfigs)}
`;
}

/** No masquerading: pods reach the host's end of the link, which knows the way back to them, and nothing else. */
function cniConfig({ podNetwork }: NodeLayout): object {
  const ipam = {
    type: 'host-local',
    // Forgotten with the node, as are the pods that had the addresses.
    dataDir: '/run/cni',
    ranges: [[{ subnet: podNetwork }]],
    routes: [{ dst: '0.0.0.0/0' }],
  };
  const bridge = { type: 'bridge', bridge: 'pods', isGateway: true, hairpinMode: true, ipam };
  return { cniVersion: '1.0.0', name: 'pods', plugins: [bridge] };
}

function kubeletConfig(layout: NodeLayout): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    containerRuntimeEndpoint: `unix://${layout.containerdSocket}`,
    podLogsDir: layout.podLogs,
    resolvConf: layout.resolvConf,
    volumePluginDir: `${layout.dir}/volume-plugins`,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${layout.cgroup}`,
    failCgroupV1: false,
    failSwapOn: false,
    // Nobody can ask it for anything: `kubectl logs` and `exec` do not work here; logs are files, below `podLogsDir`.
    enableServer: false,
    healthzPort: 0,
    authentication: { anonymous: { enabled: false }, webhook: { enabled: false } },
    authorization: { mode: 'AlwaysAllow' },
    // kubelet is in the host's network, whose rules are not ours.
    makeIPTablesUtilChains: false,
    // A developer's disk may be rather full, and the images can't be had again.
    imageGCHighThresholdPercent: 100,
    evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
  };
}
