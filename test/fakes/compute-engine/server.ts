import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AdminDeps, administer } from './admin.ts';
import { ErrorAnswer, notFound } from './api-error.ts';
import { type ApiRequest, answer, routeOf } from './routes.ts';

export interface ServerDeps extends AdminDeps {
  /** 0 for any that is free. */
  port: number;
}

const BODY_LIMIT = 1024 * 1024;

/** Serves the API and the admin endpoint on loopback. */
export async function serve(deps: ServerDeps): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    handle(request, response, deps).catch((error: unknown) => {
      if (response.headersSent || response.destroyed) return;
      send(response, error instanceof ErrorAnswer ? error : new ErrorAnswer(500, 'internalError', String(error)));
    });
  });
  server.listen(deps.port, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close').catch(() => {});
    },
  };
}

async function handle(request: IncomingMessage, response: ServerResponse, deps: ServerDeps): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
  const method = request.method ?? 'GET';
  const body = await bodyOf(request);
  if (pathname.startsWith('/admin/')) return json(response, 200, administer(method, pathname, body, deps));

  const { project, faults, settings, calls } = deps;
  const [, id, rest = ''] = /^\/compute\/v1\/projects\/([^/]+)\/(.+)$/.exec(pathname) ?? [];
  const route = id === undefined ? undefined : routeOf(method, rest);
  if (!route) throw new ErrorAnswer(404, 'notFound', `${method} ${pathname} is not a path of this test part`);
  calls.push({ at: deps.now(), call: route.call });
  if (id !== project.id) throw notFound(`projects/${id}`);

  const effect = faults.hit(route.call, route.zone, route.name ?? (body as { name?: string } | undefined)?.name);
  if (effect?.kind === 'cut') return void request.socket.destroy();
  if (effect?.kind === 'error') throw new ErrorAnswer(effect.status, effect.reason, effect.message, effect.retryAfter);
  project.timeline.settle();
  try {
    const text = JSON.stringify(
      answer({ ...route, query: searchParams, body } as ApiRequest, project, settings, effect),
    );
    if (effect?.kind === 'delay') await sleep(effect.millis, undefined, { ref: false });
    if (effect?.kind === 'lost') return void request.socket.destroy();
    if (!response.destroyed) json(response, 200, text);
  } catch (error) {
    if (effect?.kind === 'delay') await sleep(effect.millis, undefined, { ref: false });
    throw error;
  }
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    if (size > BODY_LIMIT) throw new ErrorAnswer(413, 'uploadTooLarge', 'The request is too large.');
    chunks.push(chunk as Buffer);
  }
  if (size === 0) return undefined;
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    throw new ErrorAnswer(400, 'parseError', 'Parse Error');
  }
}

function send(response: ServerResponse, error: ErrorAnswer): void {
  if (error.retryAfter !== undefined) response.setHeader('retry-after', String(error.retryAfter));
  json(response, error.status, error.body);
}

function json(response: ServerResponse, status: number, content: object | string): void {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  response.writeHead(status, { 'content-type': 'application/json; charset=UTF-8' }).end(text);
}
