import { defineConfig } from 'vitest/config';
import { ContractTable } from './contract-table.ts';

/** Every provider that promises to keep the contract, with the file that puts it to the proof. One line joins another. */
const PROVIDERS = {
  host: 'test/activities/providers/host.test.ts',
  kubernetes: 'test/activities/providers/kubernetes.test.ts',
  gcp: 'test/activities/providers/gcp.test.ts',
};

/** `npm run test:providers`: the conformance suite alone, of all providers, and its table. */
export default defineConfig({
  test: {
    include: Object.values(PROVIDERS),
    testNamePattern: /: the provider contract /,
    reporters: ['default', new ContractTable(Object.keys(PROVIDERS))],
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
