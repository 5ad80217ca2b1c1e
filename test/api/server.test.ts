import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { startLeaseApi } from '../../api/server.ts';

const hostname = '127.0.0.1';
const hello = { fetch: () => Response.json({ hello: true }) };

describe('the lease API on its port', () => {
  it('names host and port when the port is taken', async () => {
    const first = await startLeaseApi({ app: hello, hostname, port: 0 });
    await expect(startLeaseApi({ app: hello, hostname, port: first.port })).rejects.toThrow(
      `the lease API can't listen on 127.0.0.1:${first.port}: the port is taken`,
    );
    await first.close();
  });

  it('finishes running requests when it closes, and takes no new ones', async () => {
    const started = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const app = {
      async fetch() {
        started.resolve();
        await release.promise;
        return Response.json({ hello: true });
      },
    };
    const server = await startLeaseApi({ app, hostname, port: 0 });
    const url = `http://${hostname}:${server.port}/`;
    const running = fetch(url);
    await started.promise;
    const closed = server.close();
    await expect(fetch(url, { headers: { connection: 'close' } })).rejects.toThrow();
    release.resolve();
    expect(await (await running).json()).toEqual({ hello: true });
    await closed;
  });

  it('cuts off what does not finish within the bound', async () => {
    const app = { fetch: () => new Promise<Response>(() => {}) };
    const server = await startLeaseApi({ app, hostname, port: 0, shutdownMillis: 50 });
    const hung = fetch(`http://${hostname}:${server.port}/`);
    hung.catch(() => {});
    await server.close();
    await expect(hung).rejects.toThrow();
  });

  it('answers in JSON even to what is not a valid request', async () => {
    const server = await startLeaseApi({ app: hello, hostname, port: 0 });
    const socket = connect(server.port, hostname);
    socket.end('GET /a\\b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    const [answer] = await once(socket, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1\.1 400 [\s\S]*"error":"invalid_request"/);
    await server.close();
  });
});
