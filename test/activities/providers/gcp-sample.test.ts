import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { createProvider, parseProviders } from '../../../activities/providers/registry.ts';
import { squidConf } from '../../../activities/providers/squid-conf.ts';
import { SAMPLE_CLIENTS, squidCloudInit } from '../../../deploy/samples/gcp/cloud-init.ts';
import type { ManagedSpec, Proxy } from '../../../model/proxy.ts';
import { never, untilState } from './conformance.ts';
import { gcpRequest, gcpWorld } from './gcp-world.ts';

const sample = (file: string): Promise<string> =>
  readFile(new URL(`../../../deploy/samples/gcp/${file}`, import.meta.url), 'utf8');

test("the sample's cloud-init is what its program writes, and has the Squid configuration of every other provider", async () => {
  const text = await sample('cloud-init.yaml');
  expect(text).toBe(squidCloudInit(SAMPLE_CLIENTS));
  expect(text).toMatch(/^#cloud-config\n/);
  const { write_files: files } = parse(text) as { write_files: { path: string; content: string }[] };
  const conf = squidConf({
    port: 3128,
    clients: [...SAMPLE_CLIENTS],
    allowedNetworks: [],
    httpPorts: [80],
    connectPorts: [443],
  });
  expect(files.find(({ path }) => path === '/etc/squid/egress.conf')?.content).toBe(conf);
});

test('Compute Engine makes a VM from the sample provider, Proxy and cloud-init', async () => {
  const { engine } = await gcpWorld({ projectId: 'my-project', settings: { insertMillis: 0 } });
  const [config] = parseProviders(await sample('providers.yaml'), 'providers.yaml');
  const { spec } = parse(await sample('proxy.yaml')) as Proxy;
  const { provider: name, placement = {} } = spec as ManagedSpec;
  if (config?.type !== 'gcp') return expect.unreachable('the sample is of type gcp');
  expect(name).toBe(config.name);

  const provider = await createProvider({ ...config, endpoint: engine.url, credentials: 'none' }, console);
  const cloudInit = await sample('cloud-init.yaml');
  const made = await provider.create(gcpRequest('a', { placement, cloudInit }), never());
  await untilState(provider, made, 'Running');
  const { resource } = engine.machine('europe-west1-b', made.name) ?? {};
  expect(resource?.metadata.items).toContainEqual({ key: 'user-data', value: cloudInit });
  // The firewall rules hold for the tag that the VMs have.
  const tags = (resource?.tags as { items: string[] } | undefined)?.items ?? [];
  const firewall = await sample('firewall.sh');
  for (const [, tag] of firewall.matchAll(/--target-tags=(\S+)/g)) expect(tags).toContain(tag);
  expect(firewall).toContain('--rules=tcp:3128');
});

test('the Compute Engine for tests runs as a program, and is told over HTTP what to do wrong', async () => {
  const child = spawn('node', ['test/fakes/compute-engine/main.ts', '--settings', '{"insertMillis": 0}']);
  onTestFinished(() => void child.kill());
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0] ?? '';
  const admin = async (method: string, path: string, body?: object) => {
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
    const response = await fetch(`${url}/admin/${path}`, init);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  const rule = {
    call: 'instances.insert',
    effect: { kind: 'error', status: 429, reason: 'rateLimitExceeded', retryAfter: 3 },
  };
  expect((await admin('POST', 'faults', [rule])).status).toBe(200);
  expect(await admin('POST', 'faults', { effect: { kind: 'nonsense' } })).toMatchObject({ status: 400 });
  expect(await admin('POST', 'settings', { pageSize: 2 })).toMatchObject({ body: { pageSize: 2, insertMillis: 0 } });

  const [config] = parseProviders(
    `- {name: gcp, type: gcp, projectId: test-project, endpoint: "${url}", credentials: none}`,
    'p.yaml',
  );
  if (!config) return expect.unreachable();
  const provider = await createProvider(config, console);
  await expect(provider.create(gcpRequest('a'), never())).rejects.toMatchObject({
    class: 'RateLimited',
    retryAfterMillis: 3_000,
  });
  await provider.create(gcpRequest('a'), never());
  const { name } = gcpRequest('a');
  expect((await admin('GET', 'state')).body).toMatchObject({ instances: [{ name }], inserts: { [name]: 1 } });
});
