import { type AptPackage, installWithApt, missingForApt } from './apt-install.ts';
import { findExecutable, pathFolders } from './executables.ts';

/** The sbin folders are often missing from a user's PATH. */
const folders = (): string[] => [...pathFolders(), '/usr/sbin', '/usr/local/sbin', '/usr/local/squid/sbin'];
/** The package would start a proxy on port 3128 and at every boot; it is kept from that. */
const packages = (): AptPackage[] => [{ name: 'squid', programs: ['squid'], folders: folders(), service: 'squid' }];

/** Squid as the system has it. */
export const findSquid = (): string | undefined => findExecutable('squid', folders());

/** What must be done by hand before Squid is there, or nothing when we can install it. */
export function missingForSquid(): string | undefined {
  const problem = missingForApt(packages(), 'Install Squid 5 or newer from your system’s packages');
  return problem && `it is not on PATH, nor in /usr/sbin, and ${problem}`;
}

export const installSquid = (note: (text: string) => void): Promise<void> => installWithApt(packages(), note);
