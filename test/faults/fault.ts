import { test } from 'vitest';

/** One row of the table that `npm run test:faults` prints. */
export interface FaultRow {
  /** What was done to the system. */
  fault: string;
  /** How often. */
  times: number;
  /** What had to hold afterwards. */
  checked: string;
}

declare module 'vitest' {
  interface TaskMeta {
    fault?: FaultRow;
  }
}

/** How often repeatable faults are injected: FAULTS=full is the long form, a plain `npm test` the bounded one. */
export const repetitions = (bounded: number, full: number): number => (process.env.FAULTS === 'full' ? full : bounded);

/**
 * A test that injects `times` faults of one kind and then checks what must hold; a row of the table. `run` may still
 * correct the row, where only it knows how often.
 */
export function faultTest(row: FaultRow, run: (row: FaultRow) => Promise<void>, timeoutMillis = 120_000): void {
  test(
    `${row.fault}: ${row.checked}`,
    async ({ task }) => {
      task.meta.fault = row;
      await run(row);
    },
    timeoutMillis,
  );
}
