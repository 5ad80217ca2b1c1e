import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as immediate } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { KeptConnections } from '../../../activities/providers/kubernetes/kept-connections.ts';
import { createPodsApi } from '../../../activities/providers/kubernetes/pods-api.ts';
import { keepCertificate } from '../../../deploy/sandbox/certificates.ts';

const pod: RequestListener = (_, response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end('{"kind":"Pod","apiVersion":"v1"}');
};

/** An API server over TLS, which counts the connections that it is asked for, and a way to ask it. */
async function apiServer(answer: RequestListener = pod) {
  const dir = mkdtempSync(join(tmpdir(), 'kept-connections-'));
  const files = await keepCertificate(dir, { ca: 'test', names: [], ips: ['127.0.0.1'] });
  const server = createServer({ cert: readFileSync(files.cert), key: readFileSync(files.key) }, answer);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
    rmSync(dir, { recursive: true });
  });
  let connections = 0;
  server.on('secureConnection', () => {
    connections += 1;
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const caData = readFileSync(files.ca).toString('base64');
  const load = (user: object, ca = caData) =>
    kubeConfig.loadFromClusterAndUser(
      { name: 'test', server: `https://127.0.0.1:${port}`, caData: ca, skipTLSVerify: false },
      { name: 'test', ...user },
    );
  const kubeConfig = new KeptConnections();
  load({ token: 'first' });
  const pods = createPodsApi(kubeConfig);
  const ask = async (signal = AbortSignal.timeout(5_000)) => {
    await pods.read({ namespace: 'default', name: 'a' }, signal);
    // A connection is free a moment after its answer was read.
    await immediate();
  };
  return { ask, load, caData, connections: () => connections };
}

test('requests one after another share a connection, also with a renewed token', async () => {
  const { ask, load, connections } = await apiServer();
  for (const token of ['first', 'first', 'renewed']) {
    load({ token });
    await ask();
  }
  expect(connections()).toBe(1);
});

test('requests at once have a connection each, and leave them to the next', async () => {
  const { ask, connections } = await apiServer();
  await Promise.all([ask(), ask(), ask()]);
  await Promise.all([ask(), ask(), ask()]);
  expect(connections()).toBe(3);
});

test('a renewed certificate is used at once', async () => {
  const { ask, load, caData, connections } = await apiServer();
  await ask();
  const another = Buffer.concat([Buffer.from(caData, 'base64'), Buffer.from('\n')]).toString('base64');
  load({ token: 'first' }, another);
  await ask();
  expect(connections()).toBe(2);
});

test('a request that is given up takes its connection with it', async () => {
  let asked = 0;
  const { ask, connections } = await apiServer((request, response) => {
    asked += 1;
    // As on a half-open connection: the first request is never answered.
    if (asked > 1) pod(request, response);
  });
  await expect(ask(AbortSignal.timeout(200))).rejects.toThrow();
  await ask();
  expect(connections()).toBe(2);
});
