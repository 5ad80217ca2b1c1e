import { defineConfig } from 'vitest/config';

/** `npm run record-histories`: not a test, but it needs what the suites on real servers need. */
export default defineConfig({
  test: { include: ['test/histories/record.ts'], testTimeout: 180_000, hookTimeout: 180_000 },
});
