import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { errorClass, never, requestFor, untilState } from './conformance.ts';
import { hostWorld } from './host-world.ts';

/** What is there after a crash, a reboot or somebody's hands, and what comes of it. */
const a = requestFor('a');

test('at start, what is recorded runs again: same address, same instance', async () => {
  const host = await hostWorld();
  const made = await (await host.start()).create(a, never());
  await host.kill(a.name);
  const next = await host.start();
  expect(await next.get(a, never())).toEqual({ ...made, state: 'Running' });
  expect((await host.squids()).get(a.name)).toHaveLength(1);
});

test('at start, what runs is left alone', async () => {
  const host = await hostWorld();
  await (await host.start()).create(a, never());
  const before = await host.squids();
  await host.start();
  expect(await host.squids()).toEqual(before);
});

test('a crash between folder and process is made good by the next create', async () => {
  const host = await hostWorld();
  const provider = await host.start();
  const made = await provider.create(a, never());
  await host.kill(a.name);
  expect(await provider.create(a, never())).toEqual(made);
  expect((await host.squids()).get(a.name)).toHaveLength(1);
});

test('a deletion that a crash cut short is finished, never revived', async () => {
  const host = await hostWorld();
  const provider = await host.start();
  await provider.create(a, never());
  const record = join(host.stateDir, a.name, 'instance.json');
  const content = JSON.parse(await readFile(record, 'utf8'));
  await writeFile(record, JSON.stringify({ ...content, deleting: true }));
  expect(await provider.get(a, never())).toMatchObject({ state: 'Stopped', reason: 'its deletion has begun' });
  const next = await host.start();
  expect(await errorClass(next.get(a, never()))).toBe('NotFound');
  expect(await host.squids()).toEqual(new Map());
  expect(await readdir(host.stateDir)).toEqual([]);
});

test('what a crash left half-way in or out is removed at start, and nothing else', async () => {
  const host = await hostWorld();
  await mkdir(join(host.stateDir, `.${a.name}.${crypto.randomUUID()}`));
  await mkdir(join(host.stateDir, '.keep'));
  await host.start();
  expect(await readdir(host.stateDir)).toEqual(['.keep']);
});

test('a Squid whose folder was removed by hand is not NotFound, and delete finds and ends it', async () => {
  const host = await hostWorld();
  const provider = await host.start();
  await provider.create(a, never());
  await rm(join(host.stateDir, a.name), { recursive: true });
  expect(await provider.get(a, never())).toMatchObject({ state: 'Stopped', uid: 'a' });
  expect(await provider.delete(a, never())).toBe('gone');
  expect(await host.squids()).toEqual(new Map());
});

test('at start, a Squid without a record is ended', async () => {
  const host = await hostWorld();
  await (await host.start()).create(a, never());
  await rm(join(host.stateDir, a.name), { recursive: true });
  await host.start();
  expect(await host.squids()).toEqual(new Map());
});

test('an instance without pid file is found by its command line, and a pid file that lies is not believed', async () => {
  const host = await hostWorld();
  const provider = await host.start();
  await provider.create(a, never());
  const pidFile = join(host.stateDir, a.name, 'squid.pid');
  await rm(pidFile);
  expect((await provider.get(a, never())).state).toBe('Running');
  await writeFile(pidFile, `${process.pid}\n`);
  expect((await provider.get(a, never())).state).toBe('Running');
  expect(await provider.delete(a, never())).toBe('gone');
  expect(await host.squids()).toEqual(new Map());
});

test.each([
  ['without a record', undefined],
  ['with a broken record', '{"name":'],
  ['with the record of another', JSON.stringify({ name: 'proxy-other', uid: 'a' })],
])('a folder %s is Permanent, is left alone, and makes the list incomplete', async (_what, record) => {
  const host = await hostWorld();
  const folder = join(host.stateDir, a.name);
  await mkdir(folder);
  if (record !== undefined) await writeFile(join(folder, 'instance.json'), record);
  const provider = await host.start();
  expect(await errorClass(provider.create(a, never()))).toBe('Permanent');
  expect(await errorClass(provider.get(a, never()))).toBe('Permanent');
  expect(await errorClass(provider.delete(a, never()))).toBe('Permanent');
  expect(await provider.list(never())).toEqual({ instances: [], unreachable: [a.name] });
  expect(await readdir(folder)).toHaveLength(record === undefined ? 0 : 1);
});

test('an instance outlives the kill -9 of the worker that made it, whatever it then has to log', async () => {
  const host = await hostWorld();
  const script = `
    import { createHostProvider } from '${new URL('../../../activities/providers/host/index.ts', import.meta.url)}';
    const provider = await createHostProvider(${JSON.stringify(host.config())});
    await provider.create(${JSON.stringify(a)}, new AbortController().signal);
    console.log('made');
    setInterval(() => {}, 1000);
  `;
  const worker = spawn(process.execPath, ['--input-type=module-typescript', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void worker.kill('SIGKILL'));
  await once(worker.stdout, 'data');
  worker.kill('SIGKILL');
  await once(worker, 'exit');

  const provider = await host.start();
  const { ip } = await untilState(provider, a, 'Running');
  const before = await host.squids();
  // An IPv6 target is a line in the log, which nobody reads any more.
  for (let i = 0; i < 3; i += 1) {
    const request = httpRequest({ host: ip, port: 3128, path: 'http://[2606:4700::1]/' }).end();
    const [response] = await once(request, 'response');
    expect(response.statusCode).toBe(503);
    response.resume();
  }
  expect(await host.squids()).toEqual(before);
});
