import { parseArgs } from 'node:util';
import { startComputeEngine } from './index.ts';

/** The Compute Engine for tests as a program of its own: `npx node test/fakes/compute-engine/main.ts --port 8055`. */
const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    project: { type: 'string', default: 'test-project' },
    /** JSON, see settings.ts. */
    settings: { type: 'string', default: '{}' },
  },
});

const engine = await startComputeEngine({
  port: Number(values.port),
  projectId: values.project,
  settings: JSON.parse(values.settings),
});
console.log(
  `Compute Engine for tests, project ${engine.projectId}, at ${engine.url}; faults: POST ${engine.url}/admin/faults`,
);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void engine.close());
