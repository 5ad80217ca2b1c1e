// Runs like `npm start`, but with an idle stand-in for the orchestrator: for suites that run, kill and break their own.
import { describeFailure } from '../../deploy/sandbox/failure.ts';
import { obtainParts } from '../../deploy/sandbox/parts.ts';
import { sandboxPaths } from '../../deploy/sandbox/paths.ts';
import { createProgress } from '../../deploy/sandbox/progress.ts';
import { startSandbox } from '../../deploy/sandbox/session.ts';
import { onStopRequests } from '../../deploy/sandbox/stop-requests.ts';

const progress = createProgress();
const hurry = new AbortController();
const { promise: asked, resolve } = Promise.withResolvers<void>();
const stop = new AbortController();
onStopRequests({
  first: () => {
    stop.abort();
    resolve();
  },
  second: () => hurry.abort(),
});
try {
  const sandbox = await startSandbox({
    paths: sandboxPaths(),
    parts: (signal) => obtainParts({ progress, signal }),
    orchestrator: { command: process.execPath, args: ['test/e2e/idle-orchestrator.ts'] },
    progress,
    signal: stop.signal,
    hurry: hurry.signal,
  });
  progress.line('ready');
  // A promise alone does not keep the process alive.
  const alive = setInterval(() => {}, 2 ** 30);
  await asked;
  clearInterval(alive);
  await sandbox.stop();
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = 1;
} finally {
  progress.close();
}
