/** Grants leases on the file named by its argument, prints each id once it is answered, and goes on until it is killed. */
import { argv, stdout } from 'node:process';
import { openEmbeddedLeaseStore } from '../../../api/leases/embedded.ts';

const store = openEmbeddedLeaseStore(argv[2] as string, { cooldownMillis: 60_000 });
const candidates = [{ uid: 'a', maxConcurrent: 1_000_000 }];

const print = (line: string): Promise<void> => new Promise((resolve) => stdout.write(`${line}\n`, () => resolve()));

async function grantForEver(): Promise<never> {
  for (;;) {
    const outcome = await store.grant({ candidates, ttlMillis: 3_600_000, target: undefined, owner: undefined });
    if (outcome.granted) await print(outcome.lease.id);
  }
}

await Promise.all(Array.from({ length: 16 }, grantForEver));
