// Only obtains the parts: what `npm test` runs first, and what warms a machine before a demo.
import { describeFailure, SandboxError } from './failure.ts';
import { obtainParts } from './parts.ts';
import { requireProc } from './process-identity.ts';
import { createProgress } from './progress.ts';

const progress = createProgress();
const stop = new AbortController();
process.once('SIGINT', () => stop.abort());
process.once('SIGTERM', () => stop.abort());
try {
  requireProc();
  const parts = await obtainParts({ progress, signal: stop.signal });
  for (const [name, path] of Object.entries(parts)) progress.line(`${name.padEnd(15)} ${path}`);
} catch (error) {
  progress.close();
  if (stop.signal.aborted) process.exitCode = 130;
  else {
    console.error(describeFailure(error));
    process.exitCode = error instanceof SandboxError ? error.exitCode : 1;
  }
}
