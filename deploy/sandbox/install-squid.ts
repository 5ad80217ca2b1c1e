import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { findExecutable, pathFolders } from './executables.ts';
import { runCommand } from './run-command.ts';

const policyFile = '/usr/sbin/policy-rc.d';
const install = 'apt-get install -y --no-install-recommends squid';

/** Squid as the system has it. The sbin folders are often missing from a user's PATH. */
export function findSquid(): string | undefined {
  return findExecutable('squid', [...pathFolders(), '/usr/sbin', '/usr/local/sbin', '/usr/local/squid/sbin']);
}

/** What must be done by hand before Squid is there, or nothing when we can install it. */
export function missingForSquid(): string | undefined {
  if (!findExecutable('apt-get', [...pathFolders(), '/usr/bin'])) {
    return 'squid is not on PATH, nor in /usr/sbin, and there is no apt-get. Install Squid 5 or newer from your system’s packages';
  }
  if (process.getuid?.() !== 0) return `squid is not installed, and only root can install it. Run: sudo ${install}`;
  return undefined;
}

/**
 * Installs Squid as root on Debian or Ubuntu. The package would start a proxy on port 3128 and at every boot; nobody
 * asked for that, so it is kept from starting and disabled.
 */
export async function installSquid(note: (text: string) => void): Promise<void> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const what = 'installing squid with apt-get';
  const apt = ['-q', '-o', 'DPkg::Lock::Timeout=120'];
  // Debian's way to say "install, don't start"; a policy that is already there is the administrator's.
  const ownPolicy = !existsSync(policyFile);
  if (ownPolicy) writeFileSync(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  // Without an abort signal: an interrupted dpkg leaves the system half configured, and this takes seconds.
  try {
    note('apt-get update');
    await runCommand('apt-get', ['update', ...apt], { what: 'apt-get update', env });
    note('apt-get install');
    await runCommand('apt-get', ['install', '-y', '--no-install-recommends', ...apt, 'squid'], { what, env });
  } finally {
    if (ownPolicy) rmSync(policyFile, { force: true });
  }
  // Only where systemd really runs the machine.
  if (existsSync('/run/systemd/system')) {
    await runCommand('systemctl', ['disable', '--now', 'squid'], { what: 'disabling the squid service', env });
  }
}
