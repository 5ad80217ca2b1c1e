/**
 * How long it takes from the silent death of a machine until its replacement is there, at the default intervals: found by
 * the drift sweep alone, and with failing probes as a faster witness. Needs a running sandbox (`npm start`, or SANDBOX_DIR
 * for another folder) and deletes what it makes. Run it with `npx node test/bench/death-to-replacement.ts`; it takes minutes.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseEnv } from 'node:util';
import { sandboxPaths } from '../../deploy/sandbox/paths.ts';
import type { Proxy } from '../../model/proxy.ts';
import { type Fleet, instanceOf, openFleet, readyAt } from '../e2e/fleet.ts';
import { squidOf } from '../e2e/squids.ts';

const PROXIES = 12;
/** Deaths are spread over this, so that none is favoured by when the sweep comes. */
const SPREAD_MILLIS = 120_000;

/** What finds a death, and how each proxy's probes are set for that. */
const WITNESSES = [
  { name: 'drift sweep alone (every 2 min)', health: { intervalSeconds: 3600 } },
  { name: 'probes at their defaults (30 s, 3 failures)', health: {} },
  { name: 'probes every 5 s, 2 failures', health: { intervalSeconds: 5, timeoutSeconds: 3, failureThreshold: 2 } },
];

/** Seconds from the kill to the next incarnation, as a client of the Kubernetes API sees it. */
async function deathToReplacement(fleet: Fleet, hostState: string, proxy: Proxy, afterMillis: number): Promise<number> {
  await sleep(afterMillis);
  process.kill(squidOf(hostState, instanceOf(proxy)), 'SIGKILL');
  const began = performance.now();
  const { name } = proxy.metadata;
  for (;;) {
    if (fleet.watch.current(name)?.status?.incarnation === 2) return (performance.now() - began) / 1000;
    await sleep(50);
  }
}

const paths = sandboxPaths();
const { KUBECONFIG = '' } = parseEnv(readFileSync(paths.envFile, 'utf8'));
const fleet = await openFleet(KUBECONFIG);
const names = WITNESSES.flatMap((_, group) =>
  Array.from({ length: PROXIES }, (__, index) => `death-${group}-${index}`),
);
try {
  const rows = await Promise.all(
    WITNESSES.map(async ({ health, name: witness }, group) => {
      const took = await Promise.all(
        names
          .filter((name) => name.startsWith(`death-${group}-`))
          .map(async (name, index) => {
            const created = await fleet.create(name, { provider: 'local', health });
            const ready = await fleet.until(name, readyAt(created));
            return await deathToReplacement(fleet, paths.hostState, ready, (SPREAD_MILLIS * index) / PROXIES);
          }),
      );
      const sorted = took.sort((a, b) => a - b);
      const at = (share: number) => (sorted[Math.floor(share * (sorted.length - 1))] ?? 0).toFixed(1).padStart(7);
      return `${witness.padEnd(46)}${at(0)}${at(0.5)}${at(1)}`;
    }),
  );
  console.log(`${`seconds from death to replacement, ${PROXIES} each`.padEnd(46)}    min    p50    max`);
  for (const row of rows) console.log(row);
} finally {
  const made = names.filter((name) => fleet.watch.current(name));
  await Promise.all(made.map((name) => fleet.remove(name)));
  await Promise.all(made.map((name) => fleet.gone(name)));
  await fleet.close();
}
