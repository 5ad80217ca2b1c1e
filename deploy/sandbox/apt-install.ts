import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { findExecutable, pathFolders } from './executables.ts';
import { runCommand } from './run-command.ts';

const policyFile = '/usr/sbin/policy-rc.d';
const aptGet = (packages: readonly string[]) => `apt-get install -y --no-install-recommends ${packages.join(' ')}`;

/** Debian packages, and the services that they would start. */
export interface AptRecipe {
  packages: readonly string[];
  services: readonly string[];
}

/** What must be done by hand before the packages are there, or nothing when we can install them. */
export function missingForApt({ packages }: AptRecipe, otherwise: string): string | undefined {
  if (!findExecutable('apt-get', [...pathFolders(), '/usr/bin'])) return `there is no apt-get. ${otherwise}`;
  if (process.getuid?.() !== 0) return `only root can install ${packages.join(', ')}. Run: sudo ${aptGet(packages)}`;
  return undefined;
}

/**
 * Installs packages as root on Debian or Ubuntu. Nobody asked for their services, so these are kept from starting, now
 * and at every boot.
 */
export async function installWithApt({ packages, services }: AptRecipe, note: (text: string) => void): Promise<void> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const what = `installing ${packages.join(', ')} with apt-get`;
  const apt = ['-q', '-o', 'DPkg::Lock::Timeout=120'];
  // Debian's way to say "install, don't start"; a policy that is already there is the administrator's.
  const ownPolicy = !existsSync(policyFile);
  if (ownPolicy) writeFileSync(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  // Without an abort signal: an interrupted dpkg leaves the system half configured, and this takes seconds.
  try {
    note('apt-get update');
    await runCommand('apt-get', ['update', ...apt], { what: 'apt-get update', env });
    note('apt-get install');
    await runCommand('apt-get', ['install', '-y', '--no-install-recommends', ...apt, ...packages], { what, env });
  } finally {
    if (ownPolicy) rmSync(policyFile, { force: true });
  }
  // Only where systemd really runs the machine.
  if (!existsSync('/run/systemd/system')) return;
  for (const service of services) {
    await runCommand('systemctl', ['disable', '--now', service], { what: `disabling the ${service} service`, env });
  }
}
