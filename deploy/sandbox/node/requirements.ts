import { type AptRecipe, installWithApt, missingForApt } from '../apt-install.ts';
import { findExecutable, pathFolders } from '../executables.ts';
import { SandboxError } from '../failure.ts';

const sbin = ['/usr/sbin', '/sbin'];
const cniPlugins = ['bridge', 'host-local', 'loopback'];
/** Not crun, which containerd 1.6 does not get on with: runc is named, so apt chooses it. */
const containerRuntime: AptRecipe = {
  packages: ['containerd', 'runc', 'containernetworking-plugins', 'iproute2'],
  services: ['containerd'],
};
const debootstrap: AptRecipe = { packages: ['debootstrap'], services: [] };

/** Says where a node of the sandbox's own can't be, before anything else is begun. */
export function requireNodeHost(): void {
  const remedy =
    'Without it, give the orchestrator any cluster as a `kubernetes` provider, for example one of kind ' +
    '(https://kind.sigs.k8s.io): kind create cluster, then npm start -- --providers-config FILE';
  if (process.platform !== 'linux') throw new SandboxError(`--node needs Linux. ${remedy}`, { exitCode: 2 });
  if (process.getuid?.() !== 0) {
    throw new SandboxError(`--node needs root: it runs containers, with a network of their own. ${remedy}`, {
      exitCode: 2,
    });
  }
}

/** Path of containerd, if all that goes with it is there as well. */
export function findContainerd(): string | undefined {
  const programs = ['ctr', 'runc', 'containerd-shim-runc-v2', 'ip'];
  const complete =
    programs.every((name) => findExecutable(name, [...pathFolders(), ...sbin])) &&
    cniPlugins.every((name) => findExecutable(name, ['/usr/lib/cni']));
  return complete ? findExecutable('containerd', [...pathFolders(), ...sbin]) : undefined;
}

export const missingForContainerd = (): string | undefined =>
  missingForApt(
    containerRuntime,
    'Install containerd 1.6 or newer, runc, iproute2, and the CNI plugins in /usr/lib/cni',
  );

export const installContainerd = (note: (text: string) => void): Promise<void> =>
  installWithApt(containerRuntime, note);

const findDebootstrap = (): string | undefined => findExecutable('debootstrap', [...pathFolders(), ...sbin]);

export const missingForDebootstrap = (): string | undefined =>
  findDebootstrap() ? undefined : missingForApt(debootstrap, 'Install debootstrap');

export async function provideDebootstrap(note: (text: string) => void): Promise<void> {
  if (!findDebootstrap()) await installWithApt(debootstrap, note);
}
