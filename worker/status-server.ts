import { createServer, type ServerResponse } from 'node:http';
import type { Registry } from 'prom-client';
import { request } from 'undici';
import type { ListenAddress } from './settings.ts';
import { StartError } from './start-error.ts';

export interface StatusServer {
  /** From now on `/readyz` says so. */
  setReady(ready: boolean): void;
  close(): Promise<void>;
}

/**
 * What Prometheus and the kubelet ask for: `/metrics` (our registry and, where a worker runs, the Temporal SDK's own below
 * it), `/healthz` (the process lives) and `/readyz` (it plays all of its role: 200, before that 503).
 *
 * @throws StartError when it can't listen there
 */
export async function startStatusServer(
  registry: Registry,
  { hostname, port }: ListenAddress,
  sdkMetricsUrl: string | undefined,
): Promise<StatusServer> {
  let ready = false;

  async function metrics(response: ServerResponse): Promise<void> {
    try {
      const text = `${await registry.metrics()}\n${sdkMetricsUrl ? await sdkMetrics(sdkMetricsUrl) : ''}`;
      response.writeHead(200, { 'content-type': registry.contentType }).end(text);
    } catch (error) {
      say(response, 500, (error as Error).message);
    }
  }

  const server = createServer((incoming, response) => {
    switch (incoming.url?.split('?')[0]) {
      case '/metrics':
        return void metrics(response);
      case '/healthz':
        return say(response, 200, 'ok');
      case '/readyz':
        return say(response, ready ? 200 : 503, ready ? 'ready' : 'not ready');
      default:
        return say(response, 404, 'There are /metrics, /healthz and /readyz here');
    }
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(port, hostname, resolve);
  await promise.catch((error: NodeJS.ErrnoException) => {
    const reason = error.code === 'EADDRINUSE' ? 'the address is taken' : error.message;
    throw new StartError(
      `Can't serve metrics at ${hostname}:${port}: ${reason}; choose another with --metrics-address`,
    );
  });
  return {
    setReady(now) {
      ready = now;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

function say(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain' }).end(`${text}\n`);
}

/** A scrape is worth having without these: they are missing only while the SDK starts or stops. */
async function sdkMetrics(url: string): Promise<string> {
  try {
    const { body } = await request(url, { signal: AbortSignal.timeout(2_000) });
    return await body.text();
  } catch {
    return '';
  }
}
