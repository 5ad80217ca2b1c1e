import { defineConfig } from 'vitest/config';

/** `npm run test:gcp-fleet`: 200 gcp proxies through the whole system, against a Compute Engine that misbehaves. */
export default defineConfig({
  test: {
    include: ['test/providers/fleet/*.test.ts'],
    globalSetup: ['test/setup/servers.ts'],
    testTimeout: 600_000,
    hookTimeout: 120_000,
  },
});
