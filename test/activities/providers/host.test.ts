import { once } from 'node:events';
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { errorClass, never, providerConformance, requestFor } from './conformance.ts';
import { hostWorld, WORLD_SIZE } from './host-world.ts';

providerConformance('host', async () => {
  const world = await hostWorld();
  return { provider: await world.start(), again: () => world.start() };
});

const a = requestFor('a');

test('create answers when Squid accepts connections, from one process in a session of its own', async () => {
  const host = await hostWorld();
  const provider = await host.start();
  expect(await provider.create(a, never())).toMatchObject({ state: 'Running', providerID: `host://local/${a.name}` });
  expect((await host.squids()).get(a.name)).toHaveLength(1);
});

test('an instance sends from its own address, and tells the target nothing of the client', async () => {
  const host = await hostWorld();
  const seen: { from: string | undefined; headers: Record<string, unknown> }[] = [];
  const target = createServer(({ socket, headers }, response) => {
    seen.push({ from: socket.remoteAddress, headers });
    response.end('hello');
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void target.close());
  await once(target, 'listening');
  const { port } = target.address() as AddressInfo;
  const provider = await host.start({ allowedNetworks: ['127.0.0.0/8'], httpPorts: [port] });

  for (const uid of ['a', 'b']) {
    const { ip } = await provider.create(requestFor(uid), never());
    const request = httpRequest({ host: ip, port: 3128, path: `http://127.0.0.1:${port}/` }).end();
    const [response] = await once(request, 'response');
    expect(response.statusCode).toBe(200);
    response.resume();
    expect(seen.at(-1)?.from).toBe(ip);
    expect(Object.keys(seen.at(-1)?.headers ?? {})).not.toEqual(expect.arrayContaining(['via', 'x-forwarded-for']));
  }
});

test('many made at once, by two workers, never share an address; when all are in use, it is a quota', async () => {
  const host = await hostWorld();
  const workers = [await host.start(), await host.start()];
  const made = await Promise.all(
    Array.from({ length: WORLD_SIZE }, (_, i) => workers[i % 2]?.create(requestFor(`p${i}`), never())),
  );
  expect(new Set(made.map((instance) => instance?.ip)).size).toBe(WORLD_SIZE);
  expect(made.some((instance) => /\.(0|15)$/.test(instance?.ip ?? ''))).toBe(false);
  expect((await host.squids()).size).toBe(WORLD_SIZE);
  expect(await errorClass(host.start().then((provider) => provider.create(a, never())))).toBe('QuotaExceeded');
});

test('two workers that create the same instance at once start one Squid', async () => {
  const host = await hostWorld();
  const [first, second] = [await host.start(), await host.start()];
  const made = await Promise.all([first.create(a, never()), second.create(a, never())]);
  expect(made[0]?.ip).toBe(made[1]?.ip);
  expect((await host.squids()).get(a.name)).toHaveLength(1);
});

test('a Squid that ends while the provider runs is Stopped, and is not brought back by anyone but its owner', async () => {
  const host = await hostWorld();
  const provider = await host.start();
  await provider.create(a, never());
  await host.kill(a.name);
  expect(await provider.get(a, never())).toMatchObject({ state: 'Stopped', reason: 'its Squid process has ended' });
  expect((await provider.list(never())).instances).toMatchObject([{ name: a.name, state: 'Stopped' }]);
  expect(await provider.delete(a, never())).toBe('gone');
});

test("deleting one instance touches no other's process", async () => {
  const host = await hostWorld();
  const provider = await host.start();
  await provider.create(a, never());
  await provider.create(requestFor('b'), never());
  const kept = (await host.squids()).get(requestFor('b').name);
  await provider.delete(a, never());
  expect(await host.squids()).toEqual(new Map([[requestFor('b').name, kept]]));
});

test('an address that this host does not have is Permanent, says what to do, and leaves nothing', async () => {
  const host = await hostWorld();
  const provider = await host.start({ addresses: '240.1.2.3' });
  const call = provider.create(a, never());
  expect(await errorClass(call)).toBe('Permanent');
  await expect(call).rejects.toThrow(/does not have the address 240\.1\.2\.3: add it to an interface/);
  expect(await readdir(host.stateDir)).toEqual([]);
});

test('an address whose port a stranger has is passed over', async () => {
  const host = await hostWorld();
  const first = await (await host.start()).create(a, never());
  await (await host.start()).delete(a, never());
  const stranger = createServer().listen(3128, first.ip);
  onTestFinished(() => void stranger.close());
  await once(stranger, 'listening');
  const made = await (await host.start()).create(a, never());
  expect(made).toMatchObject({ state: 'Running' });
  expect(made.ip).not.toBe(first.ip);
});

test("a Squid that can't start says why, in its own words, and leaves nothing", async () => {
  const host = await hostWorld();
  const squid = join(host.stateDir, '.squid');
  await writeFile(squid, '#!/bin/sh\necho "starting" >&2\necho "FATAL: no such user" >&2\nexit 1\n', { mode: 0o755 });
  const provider = await host.start({ squid });
  const call = provider.create(a, never());
  expect(await errorClass(call)).toBe('Transient');
  await expect(call).rejects.toThrow('Squid ended at once: FATAL: no such user');
  expect(await readdir(host.stateDir)).toEqual(['.squid']);
});

test('the cloud-init text is nowhere on disk or in the environment of the process', async () => {
  const host = await hostWorld();
  const provider = await host.start();
  await provider.create({ ...a, cloudInit: 'top-secret-text' }, never());
  const copy = join(host.stateDir, '.copy');
  await cp(join(host.stateDir, a.name), copy, { recursive: true });
  const files = await Promise.all((await readdir(copy)).map((file) => readFile(join(copy, file), 'utf8')));
  const [pid] = (await host.squids()).get(a.name) ?? [];
  files.push(await readFile(`/proc/${pid}/environ`, 'utf8'));
  expect(files.join('\n')).not.toContain('top-secret-text');
  expect(files.at(-1)?.split('\0').filter(Boolean)).toEqual([expect.stringMatching(/^PATH=/)]);
});
