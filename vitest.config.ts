import { defineConfig } from 'vitest/config';

/** Suites that start real parts share two cores: one file at a time, and patience. */
const REAL_PARTS = { fileParallelism: false, testTimeout: 120_000, hookTimeout: 120_000 } as const;

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/{model,workflows,activities,watcher,api,worker,sandbox}/**/*.test.ts'],
          exclude: ['test/activities/providers/**'],
        },
      },
      { test: { name: 'providers', include: ['test/activities/providers/**/*.test.ts'], ...REAL_PARTS } },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          globalSetup: ['test/setup/servers.ts'],
          ...REAL_PARTS,
        },
      },
      {
        test: {
          name: 'faults',
          include: ['test/faults/**/*.test.ts'],
          globalSetup: ['test/setup/servers.ts'],
          ...REAL_PARTS,
        },
      },
      { test: { name: 'e2e', include: ['test/e2e/**/*.test.ts'], ...REAL_PARTS } },
    ],
  },
});
