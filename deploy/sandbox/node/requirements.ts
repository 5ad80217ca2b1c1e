import { type AptPackage, absentPackages, installWithApt, missingForApt } from '../apt-install.ts';
import { findExecutable, pathFolders } from '../executables.ts';
import { SandboxError } from '../failure.ts';

const programFolders = (): string[] => [...pathFolders(), '/usr/sbin', '/sbin'];

/**
 * What runs containers, and gives them a network. Docker's own packages bring the first two, which those of the
 * distribution would replace, Docker and all.
 */
export function containerRuntime(folders = programFolders(), cniFolders = ['/usr/lib/cni']): AptPackage[] {
  return [
    { name: 'containerd', programs: ['containerd', 'ctr', 'containerd-shim-runc-v2'], folders, service: 'containerd' },
    // Not crun, which containerd 1.6 does not get on with: runc is named, so apt chooses it.
    { name: 'runc', programs: ['runc'], folders },
    { name: 'containernetworking-plugins', programs: ['bridge', 'host-local', 'loopback'], folders: cniFolders },
    { name: 'iproute2', programs: ['ip'], folders },
  ];
}

const debootstrap = (): AptPackage[] => [{ name: 'debootstrap', programs: ['debootstrap'], folders: programFolders() }];

/** For where the sandbox can't have a node of its own, but can do without. */
export const anyCluster =
  'Without --node, give the orchestrator any cluster as a `kubernetes` provider, for example one of kind ' +
  '(https://kind.sigs.k8s.io): kind create cluster, then npm start -- --providers-config FILE';

/** Says where a node of the sandbox's own can't be, before anything else is begun. */
export function requireNodeHost(): void {
  if (process.platform !== 'linux') {
    throw new SandboxError(
      `--node needs root on Linux, and npm start as such needs Linux (this is ${process.platform}): run it in a Linux ` +
        'machine, a virtual one say. Or run only the orchestrator (npm run orchestrator -- --help), with a Temporal and ' +
        'a cluster of your own, for example one of kind (https://kind.sigs.k8s.io), for the Proxies and for their pods: ' +
        'see deploy/samples/kubernetes.',
      { exitCode: 2 },
    );
  }
  if (process.getuid?.() !== 0) {
    throw new SandboxError(`--node needs root: it runs containers, with a network of their own. ${anyCluster}`, {
      exitCode: 2,
    });
  }
}

/** Path of containerd, if all that goes with it is there as well. */
export function findContainerd(): string | undefined {
  return absentPackages(containerRuntime()).length === 0 ? findExecutable('containerd', programFolders()) : undefined;
}

export const missingForContainerd = (): string | undefined =>
  missingForApt(
    containerRuntime(),
    'Install containerd 1.6 or newer, runc, iproute2, and the CNI plugins in /usr/lib/cni',
  );

export const installContainerd = (note: (text: string) => void): Promise<void> =>
  installWithApt(containerRuntime(), note);

export const missingForDebootstrap = (): string | undefined => missingForApt(debootstrap(), 'Install debootstrap');

export const provideDebootstrap = (note: (text: string) => void): Promise<void> => installWithApt(debootstrap(), note);
