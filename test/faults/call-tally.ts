import type { EngineState } from '../fakes/compute-engine/index.ts';

/** Short names of the calls that a provider makes, for the head of a table. */
const COLUMNS = {
  'instances.insert': 'insert',
  'instances.get': 'get',
  'instances.delete': 'delete',
  'instances.aggregatedList': 'aggregatedList',
  'zoneOperations.list': 'operations',
} as const;

interface Counts {
  at: number;
  calls: Record<string, number>;
  total: number;
  faults: number;
}

const sum = (counts: Record<string, number>): number => Object.values(counts).reduce((all, count) => all + count, 0);

/** Counts the calls of the API phase by phase; what it prints says how many a minute and a proxy costs. */
export function callTally(state: () => EngineState, proxies: number) {
  const take = (): Counts => {
    const { calls, faults } = state();
    return { at: Date.now(), calls, total: sum(calls), faults: sum(faults) };
  };
  const began = take();
  let last = began;
  const rows: Record<string, Record<string, string | number>> = {};

  function rowOf(from: Counts, to: Counts) {
    const seconds = (to.at - from.at) / 1000;
    const calls = to.total - from.total;
    const kinds = Object.entries(COLUMNS).map(([call, column]) => [
      column,
      (to.calls[call] ?? 0) - (from.calls[call] ?? 0),
    ]);
    return {
      seconds: Number(seconds.toFixed(1)),
      ...Object.fromEntries(kinds),
      calls,
      'a proxy': Number((calls / proxies).toFixed(1)),
      'a minute': Math.round((calls / seconds) * 60),
      faulty: `${Math.round(((to.faults - from.faults) / calls) * 100)} %`,
    };
  }

  return {
    /** Ends a phase, and names it. */
    phase(name: string): void {
      const now = take();
      rows[name] = rowOf(last, now);
      last = now;
    },
    print(): { faults: number } {
      rows.all = rowOf(began, last);
      console.log(`Calls of Compute Engine for ${proxies} proxies, at intervals that are shrunk for the test:`);
      console.table(rows);
      return { faults: last.faults - began.faults };
    },
  };
}
