import { type AptRecipe, installWithApt, missingForApt } from './apt-install.ts';
import { findExecutable, pathFolders } from './executables.ts';

const recipe: AptRecipe = { packages: ['squid'], services: ['squid'] };

/** Squid as the system has it. The sbin folders are often missing from a user's PATH. */
export function findSquid(): string | undefined {
  return findExecutable('squid', [...pathFolders(), '/usr/sbin', '/usr/local/sbin', '/usr/local/squid/sbin']);
}

/** What must be done by hand before Squid is there, or nothing when we can install it. */
export function missingForSquid(): string | undefined {
  const problem = missingForApt(recipe, 'Install Squid 5 or newer from your system’s packages');
  return problem && `it is not on PATH, nor in /usr/sbin, and ${problem}`;
}

/** The package would start a proxy on port 3128 and at every boot; it is kept from that. */
export const installSquid = (note: (text: string) => void): Promise<void> => installWithApt(recipe, note);
