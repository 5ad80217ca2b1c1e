import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createWire } from '../../../activities/providers/gcp/wire.ts';
import { parseProviders } from '../../../activities/providers/registry.ts';

const GCP = '{name: gcp, type: gcp, projectId: my-project}';
const HOST = '{name: local, type: host, stateDir: /var/lib/px, addresses: 127.77.0.0/16, clients: [127.0.0.0/8]}';

test('a name, a project, and the rest has defaults that give a VM nothing it does not need', () => {
  expect(parseProviders(`- ${GCP}`, 'p.yaml')).toMatchObject([
    { serviceAccount: 'none', shieldedVm: true, spot: false, externalAddress: 'ephemeral', credentials: 'default' },
  ]);
});

test.each([
  ['projectId: my-project', '', 'providers[0] ("gcp").projectId: is missing'],
  ['my-project', 'My_Project', 'is not the id of a project'],
  ['}', ', labels: {Team: x}}', 'providers[0] ("gcp").labels.Team'],
  ['}', ', labels: {proxy-operator-uid: x}}', 'must not begin with proxy-operator-'],
  ['}', ', tags: [Proxy]}', 'providers[0] ("gcp").tags.0'],
  ['}', ', defaults: {zones: b}}', 'providers[0] ("gcp").defaults'],
  ['}', ', serviceAccount: {email: a@b.iam.gserviceaccount.com}}', 'providers[0] ("gcp").serviceAccount'],
  ['}', ', externalAddress: fixed}', 'providers[0] ("gcp").externalAddress'],
  ['}', ', endpoint: "http://127.0.0.1:8055"}', 'credentials are never sent in the clear'],
  ['}', ', endpoint: "https://compute.example/compute/v1"}', 'is an origin, without a path'],
  ['}', ', credentials: none}', "can be none for an endpoint of one's own only"],
])('refuses a configuration with %j as %j', (from, to, message) => {
  expect(() => parseProviders(`- ${GCP.replace(from, to)}`, 'p.yaml')).toThrow(message);
});

describe('what a worker carries', () => {
  /** Runs a program in a process of its own: which modules are loaded there, and how much memory it has. */
  async function worker(text: string): Promise<{ google: boolean; megabytes: number }> {
    const program = `
      import { createRequire } from 'node:module';
      const { parseProviders, createProvider } = await import('./activities/providers/registry.ts');
      for (const config of parseProviders(${JSON.stringify(text)}, 'p.yaml')) {
        if (config.type === 'gcp') await createProvider(config, console);
      }
      const loaded = Object.keys(createRequire(import.meta.filename).cache);
      const google = loaded.some((path) => path.includes('@google-cloud') || path.includes('google-auth-library'));
      console.log(JSON.stringify({ google, megabytes: Math.round(process.memoryUsage().rss / 1e6) }));`;
    const { stdout } = await promisify(execFile)('node', ['--input-type=module-typescript', '-e', program]);
    return JSON.parse(stdout);
  }

  test("without a gcp provider, none of Google's code is loaded", async () => {
    const [without, withGcp] = [await worker(`- ${HOST}`), await worker(`- ${HOST}\n- ${GCP}`)];
    console.log(`worker memory: ${without.megabytes} MB without a gcp provider, ${withGcp.megabytes} MB with one`);
    expect(without.google).toBe(false);
    expect(withGcp.google).toBe(true);
    expect(without.megabytes).toBeLessThan(withGcp.megabytes - 50);
  });
});

describe('the wire', () => {
  async function answering(status: number, headers: Record<string, string> = {}, body = 'not JSON') {
    const seen: string[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers.authorization ?? '');
      response.writeHead(status, headers).end(body);
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, seen };
  }
  const get = (wire: ReturnType<typeof createWire>, url: string) =>
    wire.call(new AbortController().signal, 2_000, () => wire.auth.fetch(url, { method: 'GET' }));

  test('each request has a fresh access token', async () => {
    const { url, seen } = await answering(200);
    let count = 0;
    const wire = createWire(async () => new Headers({ authorization: `Bearer ${++count}` }));
    await get(wire, url);
    await get(wire, url);
    expect(seen).toEqual(['Bearer 1', 'Bearer 2']);
  });

  test.each([
    [{ 'retry-after': '12' }, 12_000],
    [{ 'retry-after': new Date(Date.now() - 60_000).toUTCString() }, 0],
    [{ 'retry-after': 'soon' }, undefined],
    [{}, undefined],
  ])('an error answer with %j says how long to wait', async (headers, retryAfterMillis) => {
    const { url } = await answering(503, headers);
    const wire = createWire(async () => new Headers());
    await expect(get(wire, url)).rejects.toMatchObject({ status: 503, reasons: [], retryAfterMillis });
  });

  test.each([
    [new Error('Could not load the default credentials. Browse to …'), false],
    [Object.assign(new Error('invalid_grant'), { status: 400 }), false],
    [Object.assign(new Error('unavailable'), { status: 503 }), true],
    [new Error('connect ECONNREFUSED 169.254.169.254:80'), true],
  ])('%s: no token, so no request; whether waiting helps is told', async (error, passing) => {
    const { url, seen } = await answering(404);
    const wire = createWire(() => Promise.reject(error));
    await expect(get(wire, url)).rejects.toMatchObject({ name: 'CredentialsError', passing });
    expect(seen).toEqual([]);
  });

  test('a token that never comes is not waited for', async () => {
    const wire = createWire(() => new Promise(() => {}));
    const call = wire.call(AbortSignal.timeout(50), 2_000, () => wire.auth.fetch('http://127.0.0.1:1/', {}));
    await expect(call).rejects.toMatchObject({ name: 'TimeoutError' });
  });
});
