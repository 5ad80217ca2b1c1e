import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { describe, expect, it } from 'vitest';

const folder = fileURLToPath(new URL('../histories/', import.meta.url));
const histories = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.json'));

Runtime.install({ logger: new DefaultLogger('ERROR') });

/** The day's workflow code must go on with every workflow that any released version has started. */
describe('recorded histories', () => {
  it.each([
    'life',
    'slow',
    'quota',
    'rate-limit',
    'permanent',
    'lost-answer',
    'stubborn',
    'external',
    'continue-as-new',
    'probes',
    'zones',
    // A run that began without the patch `publish-every-report`, and went on with it.
    'upgraded',
  ])('there is one of %s', (path) => {
    expect(histories.some((file) => file.includes(`/${path}-1`))).toBe(true);
  });

  it(`all ${histories.length} replay on the code of today`, async () => {
    const workflowsPath = fileURLToPath(new URL('../../workflows/index.ts', import.meta.url));
    const all = histories.map((path) => ({
      workflowId: path,
      history: JSON.parse(readFileSync(`${folder}${path}`, 'utf8')),
    }));
    const failed: string[] = [];
    for await (const { workflowId, error } of Worker.runReplayHistories({ workflowsPath }, all)) {
      if (error) failed.push(`${workflowId}: ${error.message}`);
    }
    expect(failed).toEqual([]);
  }, 60_000);
});
