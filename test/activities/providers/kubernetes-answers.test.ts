import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { KubeConfig } from '@kubernetes/client-node';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Provider } from '../../../activities/providers/contract.ts';
import { createKubernetesProvider, kubernetesConfig } from '../../../activities/providers/kubernetes/index.ts';
import { createPodsApi } from '../../../activities/providers/kubernetes/pods-api.ts';
import { ProviderError, UID_LABEL } from '../../../model/instance.ts';
import { errorClass, never, requestFor } from './conformance.ts';

const a = requestFor('a');

/** A provider whose API server is this listener: for answers that a real one gives only under duress. */
async function providerAt(listener: RequestListener): Promise<Provider> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const kubeConfig = new KubeConfig();
  // The client speaks plain http only where no certificate is asked for.
  const target = { name: 'test', server: `http://127.0.0.1:${port}`, skipTLSVerify: true };
  kubeConfig.loadFromClusterAndUser(target, { name: 'test', token: 'none' });
  const config = kubernetesConfig.parse({
    name: 'pods',
    type: 'kubernetes',
    namespace: 'default',
    clients: ['10.0.0.0/8'],
  });
  return createKubernetesProvider(config, { pods: createPodsApi(kubeConfig) });
}

const answering = (code: number, status: object, headers: Record<string, string> = {}): Promise<Provider> =>
  providerAt((_, response) => {
    response.writeHead(code, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, ...status }));
  });

const failureOf = (call: Promise<unknown>): Promise<ProviderError> =>
  call.then(
    () => expect.unreachable(),
    (error: unknown) => {
      expect(error).toBeInstanceOf(ProviderError);
      return error as ProviderError;
    },
  );

test.each([
  [400, 'Permanent'],
  [403, 'Permanent'],
  [409, 'Transient'],
  [422, 'Permanent'],
  [429, 'RateLimited'],
  [500, 'Transient'],
  [503, 'Transient'],
  [504, 'Transient'],
])('%i is %s, with what the server said and what was asked of it', async (code, expected) => {
  const provider = await answering(code, { reason: 'Whatever', message: 'the server says so' });
  const failure = await failureOf(provider.create(a, never()));
  expect(failure.class).toBe(expected);
  expect(failure.message).toBe(`Kubernetes did not make the pod ${a.name} (${code}): the server says so`);
  expect(await errorClass(provider.list(never()))).toBe(expected);
});

test('401 is Transient: a token may just be being renewed', async () => {
  const failure = await failureOf((await answering(401, {})).get(a, never()));
  expect(failure.class).toBe('Transient');
  expect(failure.message).toBe(`Kubernetes did not show the pod ${a.name} (401): it does not accept the credentials`);
});

test('429 says for how long, in the header or else in the body', async () => {
  const header = await answering(429, {}, { 'retry-after': '7' });
  expect((await failureOf(header.get(a, never()))).retryAfterMillis).toBe(7_000);
  const body = await answering(429, { details: { retryAfterSeconds: 3 } });
  expect((await failureOf(body.get(a, never()))).retryAfterMillis).toBe(3_000);
});

describe('a list of two pages whose continue token expires', () => {
  /** Forgets the list, as a store does that has been compacted meanwhile, so many times before it gives the second page. */
  function forgetful(times: number): { provider: Promise<Provider>; asked: (string | null)[] } {
    const asked: (string | null)[] = [];
    const page = (name: string, next?: string) => ({
      kind: 'PodList',
      apiVersion: 'v1',
      metadata: { resourceVersion: '7', ...(next && { continue: next }) },
      items: [{ metadata: { name, labels: { [UID_LABEL]: name } }, status: { phase: 'Pending' } }],
    });
    const expired = { kind: 'Status', status: 'Failure', reason: 'Expired', code: 410, message: 'too old' };
    const provider = providerAt(({ url = '' }, response) => {
      const token = new URL(url, 'http://test').searchParams.get('continue');
      asked.push(token);
      const forgotten = token !== null && times-- > 0;
      response.writeHead(forgotten ? 410 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(forgotten ? expired : token ? page('second') : page('first', 'more')));
    });
    return { provider, asked };
  }

  test('is read again from its beginning, and complete', async () => {
    const { provider, asked } = forgetful(1);
    const { instances } = await (await provider).list(never());
    expect(instances.map(({ name }) => name)).toEqual(['first', 'second']);
    expect(asked).toEqual([null, 'more', null, 'more']);
  });

  test('is Transient if that goes on', async () => {
    const failure = await failureOf((await forgetful(3).provider).list(never()));
    expect(failure).toMatchObject({ class: 'Transient', message: expect.stringContaining('expired 3 times') });
  });
});

describe('a 404 that is not of the API server itself', () => {
  const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 404, message: 'not found' };
  test.each([
    ['text', 'default backend - 404'],
    ['a page', '<h1>Not found</h1>'],
    ['empty', ''],
    ['JSON of its own', JSON.stringify({ reason: 'NotFound', message: 'no route', details: { kind: 'pods' } })],
    ['of a path that is not served', JSON.stringify({ ...status, reason: 'NotFound', details: {} })],
    ['of another kind', JSON.stringify({ ...status, reason: 'NotFound', details: { kind: 'gateways' } })],
  ])('is Transient to every call: %s', async (_, body) => {
    const provider = await providerAt((_request, response) => response.writeHead(404).end(body));
    const calls = [
      provider.create(a, never()),
      provider.get(a, never()),
      provider.delete(a, never()),
      provider.list(never()),
    ];
    expect(await Promise.all(calls.map(errorClass))).toEqual(calls.map(() => 'Transient'));
  });

  test('is Transient to the delete of a pod that has been seen', async () => {
    const metadata = { name: a.name, uid: 'of-the-pod', labels: { [UID_LABEL]: a.uid } };
    const provider = await providerAt(({ method }, response) => {
      if (method === 'DELETE') response.writeHead(404).end('default backend - 404');
      else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ metadata }));
    });
    const failure = await failureOf(provider.delete(a, never()));
    expect(failure.class).toBe('Transient');
    expect(failure.message).toBe(`Kubernetes did not delete the pod ${a.name} (404): default backend - 404`);
  });
});

test('a namespace made moments ago, whose service account is not there yet, is Transient', async () => {
  const message = `pods "${a.name}" is forbidden: error looking up service account egress/default: serviceaccount "default" not found`;
  const provider = await answering(403, { reason: 'Forbidden', message, details: { kind: 'pods' } });
  expect(await errorClass(provider.create(a, never()))).toBe('Transient');
});

test('an answer that is not of the API server is Transient', async () => {
  const provider = await providerAt((_, response) => {
    response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad gateway</h1>');
  });
  expect(await errorClass(provider.get(a, never()))).toBe('Transient');
});

test('a server that never answers: every call ends when it is cancelled', async () => {
  const provider = await providerAt(() => {});
  const calls = [
    (signal: AbortSignal) => provider.create(a, signal),
    (signal: AbortSignal) => provider.get(a, signal),
    (signal: AbortSignal) => provider.delete(a, signal),
    (signal: AbortSignal) => provider.list(signal),
  ];
  for (const call of calls) {
    const failure = await failureOf(call(AbortSignal.timeout(100)));
    expect(failure.class).toBe('Transient');
    expect(failure.message).toMatch(/^gave up to .* as the call was cancelled$/);
  }
});

test('a server that never answers: a call that nobody cancels ends by itself', { timeout: 20_000 }, async () => {
  const provider = await providerAt(() => {});
  const failure = await failureOf(provider.get(a, never()));
  expect(failure.message).toBe(`Kubernetes did not show the pod ${a.name}: no answer in time`);
});
