import { basename, dirname } from 'node:path';
import { allPids, commandLineOf } from './processes.ts';

/** Which Squid processes run for which instance. */
export type Squids = Map<string, number[]>;

/** The Squids of a `host` state folder, by what /proc says: each is started with `<hostState>/<instance>/squid.conf`. */
export function squidsOf(hostState: string): Squids {
  const found: Squids = new Map();
  for (const pid of allPids()) {
    const conf = commandLineOf(pid).find((argument) => basename(argument) === 'squid.conf');
    if (conf === undefined || dirname(dirname(conf)) !== hostState) continue;
    const instance = basename(dirname(conf));
    found.set(instance, [...(found.get(instance) ?? []), pid]);
  }
  return found;
}

/** The one Squid of an instance; throws when there are none or several. */
export function squidOf(hostState: string, instance: string): number {
  const [pid, ...more] = squidsOf(hostState).get(instance) ?? [];
  if (pid === undefined || more.length > 0)
    throw new Error(`${instance} has ${pid === undefined ? 'no Squid' : `several Squids: ${[pid, ...more]}`}`);
  return pid;
}

export interface SquidSamples {
  /** How often /proc was read. */
  taken: number;
  /** Each time that an instance had more than one Squid. */
  doubles: { instance: string; pids: number[] }[];
  /** Every pid that was ever seen of an instance. */
  pids: Map<string, Set<number>>;
}

/** Looks at the Squids every 10 ms until it is stopped. */
export function sampleSquids(hostState: string): { stop(): SquidSamples } {
  const samples: SquidSamples = { taken: 0, doubles: [], pids: new Map() };
  const look = () => {
    samples.taken += 1;
    for (const [instance, pids] of squidsOf(hostState)) {
      if (pids.length > 1) samples.doubles.push({ instance, pids });
      const seen = samples.pids.get(instance) ?? new Set();
      for (const pid of pids) seen.add(pid);
      samples.pids.set(instance, seen);
    }
  };
  look();
  const timer = setInterval(look, 10);
  return {
    stop() {
      clearInterval(timer);
      look();
      return samples;
    },
  };
}
