import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findExecutable, pathFolders } from './executables.ts';
import { waitForLock } from './lock.ts';
import { cacheFolder } from './paths.ts';
import { runCommand } from './run-command.ts';

/** A Debian package, of which we need some programs. */
export interface AptPackage {
  name: string;
  /** It counts as installed when all of them are there, whoever put them there. */
  programs: readonly string[];
  folders: readonly string[];
  /** The service that it would start, of the same name as the program. */
  service?: string;
}

/** What an installation touches besides packages. */
export interface AptHost {
  /** Debian's way to say "install, don't start". */
  policyFile: string;
  /** Whether systemd really runs the machine. */
  systemd: boolean;
}

const thisHost = (): AptHost => ({
  policyFile: '/usr/sbin/policy-rc.d',
  systemd: existsSync('/run/systemd/system'),
});

/** Never at the price of another package: the administrator's choice, Docker's containerd.io say, stays. */
const install = ['install', '-y', '--no-install-recommends', '--no-remove'];
const namesOf = (packages: readonly AptPackage[]) => packages.map(({ name }) => name);
const has = ({ folders }: AptPackage, program: string) => findExecutable(program, [...folders]) !== undefined;

/** Those that lack a program. */
export const absentPackages = (packages: readonly AptPackage[]): AptPackage[] =>
  packages.filter((one) => !one.programs.every((program) => has(one, program)));

/** What must be done by hand before the packages are there, or nothing when they are or we can install them. */
export function missingForApt(packages: readonly AptPackage[], otherwise: string): string | undefined {
  const names = namesOf(absentPackages(packages));
  if (names.length === 0) return undefined;
  if (!findExecutable('apt-get', [...pathFolders(), '/usr/bin'])) return `there is no apt-get. ${otherwise}`;
  if (process.getuid?.() === 0) return undefined;
  return `only root can install ${names.join(', ')}. Run: sudo ${['apt-get', ...install, ...names].join(' ')}`;
}

/**
 * Installs, as root on Debian or Ubuntu, those of the packages that lack a program. Nobody asked for their services, so
 * these are kept from starting, now and at every boot; one that was there before is the administrator's, and left alone.
 */
export async function installWithApt(
  packages: readonly AptPackage[],
  note: (text: string) => void,
  { policyFile, systemd }: AptHost = thisHost(),
): Promise<void> {
  // One at a time: apt-get does not wait for another's lists, and the policy must stay until the last is done.
  const lock = await waitForLock(join(cacheFolder(), 'apt-get.lock'), { onWait: () => note('waiting for apt-get') });
  try {
    const absent = absentPackages(packages);
    if (absent.length === 0) return;
    const services = absent.flatMap((one) => (one.service && !has(one, one.service) ? [one.service] : []));
    await runApt(namesOf(absent), policyFile, note);
    for (const service of systemd ? services : []) {
      await runCommand('systemctl', ['disable', '--now', service], { what: `disabling the ${service} service` });
    }
  } finally {
    lock.release();
  }
}

/** Without an abort signal: an interrupted dpkg leaves the system half configured, and this takes seconds. */
async function runApt(names: string[], policyFile: string, note: (text: string) => void): Promise<void> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const quiet = ['-q', '-o', 'DPkg::Lock::Timeout=120'];
  // A policy that is already there is the administrator's.
  const ownPolicy = !existsSync(policyFile);
  if (ownPolicy) writeFileSync(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    note('apt-get update');
    await runCommand('apt-get', ['update', ...quiet], { what: 'apt-get update', env });
    note('apt-get install');
    const what = `installing ${names.join(', ')} with apt-get`;
    await runCommand('apt-get', [...install, ...quiet, ...names], { what, env });
  } finally {
    if (ownPolicy) rmSync(policyFile, { force: true });
  }
}
