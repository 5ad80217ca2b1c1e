import type { Reporter, TestCase } from 'vitest/node';

/** Prints one row per fault, after all of them. */
export default class FaultTable implements Reporter {
  private readonly rows: string[][] = [];

  onTestCaseResult(testCase: TestCase): void {
    const { fault } = testCase.meta();
    if (!fault) return;
    const { state } = testCase.result();
    this.rows.push([
      fault.fault,
      String(fault.times),
      fault.checked,
      state === 'passed' ? 'held' : state.toUpperCase(),
    ]);
  }

  onTestRunEnd(): void {
    if (this.rows.length === 0) return;
    const rows = [['fault', 'times', 'checked', 'result'], ...this.rows];
    const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
    const total = this.rows.reduce((sum, row) => sum + Number(row[1]), 0);
    const broken = this.rows.filter((row) => row[3] !== 'held').length;
    process.stdout.write('\n');
    for (const row of rows)
      process.stdout.write(
        `${row
          .map((cell, at) => cell.padEnd(widths[at] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
      );
    process.stdout.write(`\n${total} faults injected, ${broken} of ${this.rows.length} kinds not survived\n`);
  }
}
