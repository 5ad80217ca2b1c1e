import { createServer } from 'node:net';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import type { Logger } from 'pino';

/** Sets up the SDK's core, once per process. Returns where its own metrics can be fetched. */
export async function installTemporalRuntime(logger: Logger): Promise<string> {
  const bindAddress = `127.0.0.1:${await freePort()}`;
  Runtime.install({
    // Ours stops the parts in order; the SDK's would stop the workers behind its back.
    shutdownSignals: [],
    logger: new DefaultLogger('WARN', ({ level, message, meta }) => {
      const { error, ...fields } = (meta ?? {}) as { error?: unknown };
      logger[level === 'ERROR' ? 'error' : 'warn']({ ...fields, ...(error !== undefined && { err: error }) }, message);
    }),
    telemetryOptions: {
      logging: { filter: { core: 'WARN', other: 'ERROR' }, forward: {} },
      metrics: { prometheus: { bindAddress } },
    },
  });
  return `http://${bindAddress}/metrics`;
}

/** The core takes no port 0: one that is free right now must do. */
async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => probe.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
