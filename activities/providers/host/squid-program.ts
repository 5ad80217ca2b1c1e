import { access, constants } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { ProviderError } from '../../../model/instance.ts';

/** Where distributions put Squid, which an ordinary user's PATH often leaves out. */
const SBIN = ['/usr/sbin', '/usr/local/sbin', '/usr/local/squid/sbin'];

/** Absolute path of the Squid binary. Throws a Permanent `ProviderError` that says what to do when there is none. */
export async function findSquidProgram(squid: string, path = process.env.PATH ?? ''): Promise<string> {
  const places = isAbsolute(squid)
    ? [squid]
    : [...path.split(':').filter(isAbsolute), ...SBIN].map((dir) => join(dir, squid));
  for (const place of places) {
    const executable = await access(place, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (executable) return place;
  }
  const where = isAbsolute(squid) ? squid : `${squid} in ${places.length} folders of PATH and ${SBIN.join(', ')}`;
  throw new ProviderError(
    'Permanent',
    `no Squid program: ${where} is not there or not executable; install it (Debian: apt-get install squid) or set "squid" to its path`,
  );
}
