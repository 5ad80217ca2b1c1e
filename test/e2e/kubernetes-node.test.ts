import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { V1Pod } from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { nodeLayout } from '../../deploy/sandbox/node/layout.ts';
import { nodeParts, obtainParts } from '../../deploy/sandbox/parts.ts';
import { projectRoot } from '../../deploy/sandbox/paths.ts';
import type { Proxy } from '../../model/proxy.ts';
import { instanceOf, type Matches, PROBED_OFTEN, readyAt } from './fleet.ts';
import { hostState } from './host-state.ts';
import { allPids, commandLineOf, processesThatMention } from './processes.ts';
import { newSandboxFolder, removeSandboxFolder, type Sandbox, startSandbox } from './sandbox.ts';
import { clientSeenThrough } from './through-proxy.ts';
import { openWorld, type World } from './world.ts';

const BUILD_MILLIS = 15 * 60_000;
const MANY = 20;
const SAMPLE_MILLIS = 50;

/** Uids of pods at one moment. */
interface Sample {
  /** That the API has. */
  objects: string[];
  /** In which a Squid runs. */
  running: string[];
}

/** A node needs root; elsewhere `npm start -- --node` says so, and so does this suite by being skipped. */
describe.skipIf(process.getuid?.() !== 0)('proxies that are pods on a real node', () => {
  const dir = newSandboxFolder('node');
  const layout = nodeLayout({ dir, isDefault: false });
  const before = hostState();
  let clients = new AsyncDisposableStack();
  let sandbox: Sandbox | undefined;
  let world: World;

  beforeAll(async () => {
    await obtainParts({ only: nodeParts });
    await start();
  }, BUILD_MILLIS);
  afterAll(async () => {
    await clients.disposeAsync();
    await sandbox?.stop();
    removeSandboxFolder(dir);
  });

  /** Where pods reach the probe target, and, as the sandbox's own, we as well. */
  const target = () => world.sandbox.settings().POD_PROBE_TARGET ?? '';
  const create = (name: string, spec: object = {}) =>
    world.fleet.create(name, {
      provider: 'pods',
      health: { ...PROBED_OFTEN, url: target() },
      attributes: { name },
      ...spec,
    });
  const pods = async (): Promise<V1Pod[]> => (await world.fleet.core.listNamespacedPod({ namespace: 'default' })).items;
  const podOf = async (proxy: Proxy): Promise<V1Pod> =>
    world.fleet.core.readNamespacedPod({ namespace: 'default', name: instanceOf(proxy) });

  test('a proxy becomes Ready as a pod, is leased, and a request goes through the pod', async () => {
    const ready = await world.fleet.until('first', readyAt(await create('first')));
    const pod = await podOf(ready);
    expect(pod.status).toMatchObject({ phase: 'Running', podIP: ready.status?.ip });
    expect(ready.status?.providerID).toBe(`kubernetes://pods/default/${instanceOf(ready)}`);

    const { status, body } = await world.leases.take({ selector: { name: 'first' }, ttlSeconds: 60 });
    expect(status).toBe(201);
    expect(await clientSeenThrough(body.proxy?.url ?? '', target())).toBe(pod.status?.podIP);
    await world.leases.release(body.leaseID ?? '');
  });

  test('a Squid that is killed comes back in its pod, under its address', async () => {
    const proxy = current('first');
    const { metadata, status } = await podOf(proxy);
    killSquidOf(metadata?.uid ?? '');
    await vi.waitFor(
      async () => {
        const { metadata: now, status: after } = await podOf(proxy);
        expect({ uid: now?.uid, ip: after?.podIP }).toEqual({ uid: metadata?.uid, ip: status?.podIP });
        expect(after?.containerStatuses?.[0]).toMatchObject({ restartCount: 1, started: true });
      },
      { timeout: 30_000, interval: 200 },
    );
    expect(await clientSeenThrough(`http://${status?.podIP}:3128`, target())).toBe(status?.podIP);
  });

  test('an edit replaces the pod: one with the new port takes its name, and never are there two', async () => {
    const old = await podOf(current('first'));
    const watch = watchInstances();
    const edited = await world.fleet.edit('first', { port: 8080 });
    const ready = await world.fleet.until('first', readyAt(edited));
    const pod = await podOf(ready);
    expect(pod.metadata?.name).toBe(old.metadata?.name);
    expect(pod.metadata?.uid).not.toBe(old.metadata?.uid);
    const samples = await watch.end();
    expect(samples.filter(({ objects, running }) => objects.length > 1 || running.length > 1)).toEqual([]);
    for (const { metadata } of [old, pod]) {
      expect(samples.some(({ objects }) => objects.includes(metadata?.uid ?? ''))).toBe(true);
      expect(samples.some(({ running }) => running.includes(metadata?.uid ?? ''))).toBe(true);
    }
    expect(await clientSeenThrough(`http://${ready.status?.ip}:8080`, target())).toBe(ready.status?.ip);
  });

  test('deleting the proxy leaves no pod', async () => {
    await world.fleet.remove('first');
    await world.fleet.gone('first');
    expect(await pods()).toEqual([]);
  });

  test(`${MANY} at once become Ready, each with an address of its own`, { timeout: 240_000 }, async () => {
    const names = Array.from({ length: MANY }, (_, index) => `many-${index}`);
    const ready = await Promise.all(
      names.map(async (name) => {
        const applied = Date.now();
        const proxy = await patiently(name, readyAt(await create(name)));
        return { proxy, after: Date.now() - applied };
      }),
    );
    expect(new Set(ready.map(({ proxy }) => proxy.status?.ip)).size).toBe(MANY);
    const own = (await pods()).map(timeToRun);
    const p95 = (millis: number[]) =>
      `${(millis.sort((a, b) => a - b)[Math.ceil(millis.length * 0.95) - 1] ?? 0) / 1000} s`;
    console.log(
      `${MANY} pods at once, p95: apply → Ready ${p95(ready.map(({ after }) => after))}, of which kubelet's own, pod made → container started ${p95(own)}`,
    );
    await Promise.all(names.map((name) => world.fleet.remove(name)));
    await vi.waitFor(async () => expect(await pods()).toEqual([]), { timeout: 60_000, interval: 500 });
    await Promise.all(names.map((name) => world.fleet.gone(name)));
  });

  test('after a kill -9 of the sandbox, the next start ends what was left and goes on', async () => {
    const { metadata } = await podOf(await world.fleet.until('left', readyAt(await create('left'))));
    await kill();
    const left = processesThatMention(dir).map((line) => Number.parseInt(line, 10));
    expect(left.map(programOf)).toEqual(expect.arrayContaining(['containerd', 'kubelet', 'kube-apiserver', 'etcd']));
    await start();
    expect(world.sandbox.output()).toMatch(/^stopped what a killed run had left: the node, .*etcd/m);
    expect(left.filter((pid) => commandLineOf(pid).length > 0)).toEqual([]);
    await vi.waitFor(
      async () => {
        const { metadata: now, status } = await podOf(current('left'));
        expect(now?.uid).not.toBe(metadata?.uid);
        expect(await clientSeenThrough(`http://${status?.podIP}:3128`, target())).toBe(status?.podIP);
      },
      { timeout: 60_000, interval: 200 },
    );
    expect(await pods()).toHaveLength(1);
  });

  test('after a kill -9 of the sandbox, `npm run clean` leaves nothing of it on the host', async () => {
    expect(hostState()).not.toEqual(before);
    await kill();
    await clean();
    expect(processesThatMention(dir)).toEqual([]);
    expect(hostState()).toEqual(before);
  });

  test('a sandbox that is stopped leaves nothing on the host', async () => {
    await start();
    await world.fleet.until('last', readyAt(await create('last')));
    await clients.disposeAsync();
    await sandbox?.stop();
    sandbox = undefined;
    expect(hostState()).toEqual(before);
  });

  /** As the kernel would for want of memory. */
  function killSquidOf(podUid: string): void {
    const pids = squidsInPods().filter(({ pod }) => pod === podUid);
    expect(pids).toHaveLength(1);
    for (const { pid } of pids) process.kill(pid, 'SIGKILL');
  }

  /** Pods' processes are ours to see, each in a cgroup that names its node and its pod. */
  function squidsInPods(): { pid: number; pod: string }[] {
    const ofPod = new RegExp(`/${layout.cgroup}/.*/pod([\\da-f-]{36})/`);
    return allPids().flatMap((pid) => {
      const pod = ofPod.exec(cgroupsOf(pid))?.[1];
      return pod && programOf(pid) === 'squid' ? [{ pid, pod }] : [];
    });
  }

  async function start(): Promise<void> {
    clients = new AsyncDisposableStack();
    sandbox = await startSandbox(dir, { args: ['--node'] });
    world = await openWorld(sandbox, clients);
  }

  async function kill(): Promise<void> {
    await clients.disposeAsync();
    sandbox = undefined;
    const { pid } = JSON.parse(readFileSync(join(dir, 'lock.json'), 'utf8')) as { pid: number };
    process.kill(pid, 'SIGKILL');
  }

  /**
   * What there is of `first`, all along: the API has one object of a name at most, but on the node a Squid may still run
   * that it no longer knows of.
   */
  function watchInstances(): { end(): Promise<Sample[]> } {
    const samples: Sample[] = [];
    const ended = new AbortController();
    const sample = async () => {
      while (!ended.signal.aborted) {
        const objects = (await pods()).map(({ metadata }) => metadata?.uid ?? '');
        samples.push({ objects, running: [...new Set(squidsInPods().map(({ pod }) => pod))] });
        await sleep(SAMPLE_MILLIS);
      }
    };
    const sampling = sample();
    return {
      async end() {
        ended.abort();
        await sampling;
        return samples;
      },
    };
  }

  function current(name: string): Proxy {
    const proxy = world.fleet.watch.current(name);
    if (!proxy) throw new Error(`${name} is not there`);
    return proxy;
  }

  /** As `until`, for what takes longer than one proxy alone. */
  async function patiently(name: string, matches: Matches): Promise<Proxy> {
    return vi.waitFor(
      () => {
        const proxy = world.fleet.watch.current(name);
        if (!proxy || !matches(proxy)) throw new Error(`${name} is left with ${JSON.stringify(proxy?.status)}`);
        return proxy;
      },
      { timeout: 180_000, interval: 20 },
    );
  }

  /** Not synchronously: the API server waits for its clients to hang up, and we are one. */
  async function clean(): Promise<void> {
    const env = { ...process.env, SANDBOX_DIR: dir };
    await promisify(execFile)(process.execPath, ['deploy/sandbox/clean.ts'], { cwd: projectRoot, env });
  }
});

const programOf = (pid: number): string => basename(commandLineOf(pid)[0] ?? '');

function cgroupsOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, 'utf8');
  } catch {
    return '';
  }
}

/** Milliseconds from the pod's creation to the start of its container; the API has whole seconds only. */
function timeToRun({ metadata, status }: V1Pod): number {
  const started = status?.containerStatuses?.[0]?.state?.running?.startedAt;
  return (started?.getTime() ?? Number.NaN) - (metadata?.creationTimestamp?.getTime() ?? Number.NaN);
}
