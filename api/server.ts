import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { getRequestListener, RequestError } from '@hono/node-server';

/** Above the 60 s after which the usual load balancers drop an idle connection: the one who closes first must be them. */
const KEEP_ALIVE_MILLIS = 75_000;
/** For a whole request to arrive; all of ours fit in a few packets. */
const REQUEST_MILLIS = 30_000;
const HEADERS_MILLIS = 10_000;
const SHUTDOWN_MILLIS = 10_000;
/** How often a server that is closing looks for connections that have gone idle. */
const IDLE_CHECK_MILLIS = 50;

export interface LeaseServerSettings {
  app: { fetch(request: Request): Response | Promise<Response> };
  hostname: string;
  /** 0: any free one. */
  port: number;
  /** How long `close` lets running requests finish before it cuts them off. Default: 10 s. */
  shutdownMillis?: number;
}

export interface LeaseServer {
  hostname: string;
  port: number;
  /** Takes no more connections, lets running requests finish, and resolves when all connections are closed. */
  close(): Promise<void>;
}

/** @throws Error naming host and port when it can't listen there. */
export async function startLeaseApi(settings: LeaseServerSettings): Promise<LeaseServer> {
  const { app, hostname, port, shutdownMillis = SHUTDOWN_MILLIS } = settings;
  const server = createServer(
    { keepAliveTimeout: KEEP_ALIVE_MILLIS, requestTimeout: REQUEST_MILLIS, headersTimeout: HEADERS_MILLIS },
    getRequestListener((request) => app.fetch(request), { errorHandler: answerOutsideApp }),
  );
  await listen(server, hostname, port);
  return {
    hostname,
    port: (server.address() as AddressInfo).port,
    close: () => closeWithin(server, shutdownMillis),
  };
}

/** What never gets as far as the app (no Host header, an odd URL) is answered in the same shape as all else. */
function answerOutsideApp(error: unknown): Response {
  if (error instanceof RequestError) {
    const message = `not a valid HTTP request: ${error.message}`;
    return Response.json({ error: 'invalid_request', message }, { status: 400 });
  }
  return Response.json({ error: 'internal', message: 'an error on our side' }, { status: 500 });
}

async function listen(server: Server, hostname: string, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(port, hostname, resolve);
  try {
    await promise;
  } catch (cause) {
    throw new Error(`the lease API can't listen on ${hostname}:${port}: ${whyNot(cause as NodeJS.ErrnoException)}`, {
      cause,
    });
  }
  server.off('error', reject);
}

function whyNot({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'EADDRINUSE') return 'the port is taken; stop who has it, or configure another';
  if (code === 'EACCES') return 'not permitted; use a port above 1023';
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return 'this machine has no such address';
  return message;
}

async function closeWithin(server: Server, millis: number): Promise<void> {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  const deadline = AbortSignal.timeout(millis);
  while (!deadline.aborted) {
    // A keep-alive connection whose request has just been answered counts as open until somebody hangs up.
    server.closeIdleConnections();
    const settled = await Promise.race([closed.then(() => true), delay(IDLE_CHECK_MILLIS, false)]);
    if (settled) return;
  }
  server.closeAllConnections();
  await closed;
}
