import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { KubeConfig } from '@kubernetes/client-node';
import { afterEach, describe, expect, it } from 'vitest';
import { type Get, getJson, watchEvents } from '../../watcher/kubernetes-get.ts';

let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

/** A GET of a server that answers whatever it likes. */
async function getFrom(answer: RequestListener): Promise<Get> {
  const server = createServer(answer);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  stack.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  const kubeConfig = new KubeConfig();
  const { port } = server.address() as AddressInfo;
  kubeConfig.loadFromClusterAndUser(
    { name: 'test', server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
    { name: 'test', token: 'the-token' },
  );
  return { kubeConfig, path: '/api/v1/secrets', query: {}, signal: new AbortController().signal };
}

async function inPieces(response: ServerResponse, bytes: Buffer, size: number): Promise<void> {
  for (let at = 0; at < bytes.length; at += size) {
    response.write(bytes.subarray(at, at + size));
    await sleep(1);
  }
  response.end();
}

describe('a watch', () => {
  it('yields whole events, however they are cut into pieces, and drops one that never got whole', async () => {
    const lines = ['{"type":"ADDED","object":"é"}', '{"type":"BOOKMARK","object":"ü"}', '{"type":"DELET'].join('\n');
    const get = await getFrom((_, response) => void inPieces(response, Buffer.from(lines), 3));
    expect(await Array.fromAsync(watchEvents(get))).toEqual([
      { type: 'ADDED', object: 'é' },
      { type: 'BOOKMARK', object: 'ü' },
    ]);
  });

  it('fails when its connection is cut', async () => {
    const get = await getFrom(({ socket }, response) => {
      response.write('{"type":"ADDED","object":1}\n', () => socket.destroy());
    });
    await expect(Array.fromAsync(watchEvents(get))).rejects.toMatchObject({ code: 'ECONNRESET' });
  });

  it('fails with the code of an error event', async () => {
    const get = await getFrom((_, response) => {
      response.end('{"type":"ERROR","object":{"code":410,"message":"too old"}}\n');
    });
    await expect(Array.fromAsync(watchEvents(get))).rejects.toMatchObject({
      code: 410,
      message: expect.stringContaining('too old'),
    });
  });

  it('ends with the reason of the signal', async () => {
    const stop = new AbortController();
    const get = await getFrom((_, response) => void response.write('{"type":"ADDED","object":1}\n'));
    const events = watchEvents({ ...get, signal: stop.signal });
    await events.next();
    stop.abort(new Error('enough'));
    await expect(events.next()).rejects.toThrow('enough');
  });
});

describe('an answer', () => {
  it.each([
    { name: 'that is not JSON', answer: (get: Get) => getJson(get) },
    { name: 'whose events are not JSON', answer: (get: Get) => Array.fromAsync(watchEvents(get)) },
  ])('$name is never quoted: it may be of a Secret', async ({ answer }) => {
    const get = await getFrom((_, response) => void response.end('"confidential\n'));
    const error = await answer(get).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(Error);
    expect((error as Error).stack).not.toContain('confidential');
  });

  it('that is a refusal carries its status, its message and when to come again', async () => {
    const get = await getFrom((_, response) => {
      response.writeHead(429, { 'retry-after': '7' }).end('{"message":"too many requests"}');
    });
    await expect(getJson(get)).rejects.toMatchObject({
      code: 429,
      retryAfterMillis: 7_000,
      message: expect.stringContaining('too many requests'),
    });
  });

  it('that does not come is not waited for longer than allowed', async () => {
    const get = await getFrom(() => {});
    await expect(getJson({ ...get, silenceMillis: 50 })).rejects.toThrow('silent for 50 ms');
    await expect(getJson({ ...get, signal: AbortSignal.timeout(50) })).rejects.toMatchObject({ name: 'TimeoutError' });
  });
});
