import { defineConfig } from 'vitest/config';
import { PROVIDERS } from './providers.ts';

/** `npm run test:providers`: the conformance suite alone, of all providers, and its table. */
export default defineConfig({
  test: {
    include: Object.values(PROVIDERS),
    testNamePattern: /: the provider contract /,
    reporters: ['default', './test/providers/contract-table.ts'],
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
