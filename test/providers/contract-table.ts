import type { Reporter, TestCase } from 'vitest/node';
import { PROVIDERS } from './providers.ts';

const NAME = /^(.+): the provider contract > (.+)$/;

/** Prints which provider keeps which clause of the contract, after all tests. Whatever is not known to hold is a miss. */
export default class ContractTable implements Reporter {
  private readonly providers = Object.keys(PROVIDERS);
  /** Clause → the providers that keep it; in the order of the suite. */
  private readonly clauses = new Map<string, Set<string>>();

  onTestCaseResult(testCase: TestCase): void {
    const [, provider, clause] = NAME.exec(testCase.fullName) ?? [];
    if (provider === undefined || clause === undefined) return;
    const kept = this.clauses.get(clause) ?? new Set();
    this.clauses.set(clause, kept);
    if (testCase.result().state === 'passed') kept.add(provider);
  }

  onTestRunEnd(): void {
    const cell = (clause: string, provider: string) => (this.clauses.get(clause)?.has(provider) ? 'ok' : 'MISS');
    const rows = [...this.clauses.keys()].map((clause) => [
      clause,
      ...this.providers.map((provider) => cell(clause, provider)),
    ]);
    const misses = rows.flat().filter((text) => text === 'MISS').length;
    print([['the provider contract', ...this.providers], ...rows]);
    const cells = rows.length * this.providers.length;
    process.stdout.write(
      `\n${this.providers.length} providers, ${rows.length} cases: ${cells - misses} ok, ${misses} missed\n`,
    );
    // A provider whose cases were never run has failed no test.
    if (misses > 0 || cells === 0) process.exitCode = 1;
  }
}

function print(rows: string[][]): void {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  const line = (row: string[]) => row.map((text, column) => text.padEnd(widths[column] ?? 0)).join('  ');
  process.stdout.write(`\n${rows.map((row) => line(row).trimEnd()).join('\n')}\n`);
}
