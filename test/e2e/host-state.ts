import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { allPids, commandLineOf } from './processes.ts';

/** Programs that a node consists of, and those of its pods. */
const NODE_PROGRAM = /(^|\/)(kubelet|kube-scheduler|kube-controller-manager|containerd|containerd-shim[^/]*|runc)$/;
/** Where kubelet, containerd and the CNI plugins would write if nobody kept them from it. */
const NODE_FOLDERS = [
  '/usr/libexec/kubernetes',
  '/var/lib/kubelet',
  '/var/lib/cni',
  '/run/containerd',
  '/var/log/pods',
  '/var/log/containers',
];
/** Settings of the kernel that kubelet or a CNI plugin changes. */
const SETTINGS = [
  'vm/overcommit_memory',
  'vm/panic_on_oom',
  'kernel/panic',
  'kernel/panic_on_oops',
  'net/ipv4/ip_forward',
];

/** What a node with pods might leave on a host, in a form that can be compared. */
export function hostState(): Record<string, string[]> {
  const programs = allPids().map((pid) => commandLineOf(pid));
  return {
    interfaces: Object.keys(networkInterfaces()).sort(),
    links: readdirSync('/sys/class/net').sort(),
    routes: linesOf('/proc/net/route'),
    packetFilters: packetFilters(),
    mounts: linesOf('/proc/self/mounts'),
    cgroups: readdirSync('/sys/fs/cgroup', { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isDirectory() && entry.name.startsWith('egress-'))
      .map(({ parentPath, name }) => `${parentPath}/${name}`),
    folders: NODE_FOLDERS.filter(existsSync),
    settings: SETTINGS.map((setting) => `${setting}=${linesOf(`/proc/sys/${setting}`).join()}`),
    programs: programs
      .filter(([program = '', ...args]) => NODE_PROGRAM.test(program) || args.includes('/etc/egress-proxy/squid.conf'))
      .map((args) => args.join(' ')),
  };
}

/** Every rule, in the order in which they count; of the older and the newer kind, and those that other tools made. */
function packetFilters(): string[] {
  const saves = ['iptables', 'ip6tables'].flatMap((program) => [`${program}-legacy-save`, `${program}-nft-save`]);
  return [...saves.map((program) => [program]), ['nft', 'list', 'ruleset']].flatMap(([program = '', ...args]) => {
    const { stdout } = spawnSync(program, args, { encoding: 'utf8' });
    // Comments have the time, chains their counters. Without the program, there is nothing that it made.
    const lines = (stdout ?? '').split('\n').filter((line) => line && !line.startsWith('#'));
    return lines.map((line) => `${program}: ${line.replaceAll(/\[\d+:\d+\]|packets \d+ bytes \d+/g, '')}`);
  });
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n').filter(Boolean).sort();
  } catch {
    return [];
  }
}
