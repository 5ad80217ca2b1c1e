import { setTimeout } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import pLimit from 'p-limit';
import { afterAll, beforeAll, expect, inject, vi } from 'vitest';
import { createGcpProvider, gcpConfig } from '../../activities/providers/gcp/index.ts';
import { ownerOf, specHashOf } from '../../activities/providers/gcp/ownership.ts';
import { formatProviderID } from '../../activities/providers/gcp/provider-id.ts';
import { HASH_ANNOTATION, type ManagedSpec, type Proxy } from '../../model/proxy.ts';
import { specHash } from '../../model/spec-hash.ts';
import { onEngine, PLACEMENT } from '../activities/providers/gcp-world.ts';
import { seededRandom } from '../e2e/random.ts';
import { type ComputeEngine, startComputeEngine } from '../fakes/compute-engine/index.ts';
import { type System, startSystem } from '../integration/system.ts';
import { callTally } from './call-tally.ts';
import { type FaultRow, faultTest, repetitions } from './fault.ts';

const PROXIES = repetitions(30, 200);
const SEED = Number(process.env.FAULTS_SEED ?? Date.now() % 1_000_000);
const ZONES = ['europe-west1-b', 'europe-west1-c', 'us-central1-a', 'us-central1-f'] as const;
/** Without any progress. */
const STALL_MILLIS = 120_000;
/** Of all calls, about the part that goes wrong in one of four ways. */
const FAULT_RATE = 0.2;
/** No instance is ever given up as too slow here: that would be a reason to make another one. */
const TIMING = { provisioningPoll: 250, deletionPoll: 250, provisioningTimeout: 600_000 };
const ENGINE = { insertMillis: 200, natMillis: 50, deleteMillis: 200, listLagMillis: 50, pageSize: 50 };

/** One Proxy, and what was asked for it. */
interface Life {
  name: string;
  zone: (typeof ZONES)[number];
  /** Of its VM, and of its workflow. */
  instance: string;
  workflow: string;
  /** Generations that need a VM of their own: the first, and one for each edit. */
  generations: number;
}

const random = seededRandom(SEED);
/** The API server takes 200 changes at a time; clients that are told to wait would only make the test longer. */
const limit = pLimit(50);
let engine: ComputeEngine;
let system: System;
const lives: Life[] = [];

beforeAll(async () => {
  engine = await startComputeEngine({ settings: ENGINE, random: () => random.between(0, 999_999) / 1_000_000 });
  const provider = await createGcpProvider(gcpConfig.parse(onEngine(engine)));
  system = await startSystem(
    { kubeconfig: inject('kubeconfig'), temporalAddress: inject('temporalAddress') },
    { serve: { name: 'gcp', provider, zonal: {} }, timing: TIMING, maxCachedWorkflows: PROXIES + 50 },
  );
});
afterAll(async () => {
  await system?.stop();
  await engine?.close();
});

function misbehave(): void {
  const effects = [
    { kind: 'lost' },
    { kind: 'cut' },
    { kind: 'error', status: 503 },
    { kind: 'error', status: 429, reason: 'rateLimitExceeded', retryAfter: 1 },
  ] as const;
  // The rules are asked one after the other, each only if those before it let the call pass.
  const probability = 1 - (1 - FAULT_RATE) ** (1 / effects.length);
  for (const effect of effects) engine.faults.add({ times: null, probability, effect });
}

const all = (work: (life: Life) => Promise<void>) => Promise.all(lives.map((life) => limit(() => work(life))));

async function create(life: Life): Promise<void> {
  const spec: ManagedSpec = { provider: 'gcp', placement: { ...PLACEMENT, zone: life.zone } };
  Object.assign(life, await system.apply(life.name, spec));
}

/** To another zone, where the same name is another VM: the old one is easily left behind. */
async function move(life: Life): Promise<void> {
  life.zone = random.pick(ZONES.filter((zone) => zone !== life.zone) as unknown as typeof ZONES);
  life.generations += 1;
  await system.patch(life.name, { spec: { placement: { zone: life.zone } } });
}

const until = (holds: () => boolean) => vi.waitFor(() => expect(holds()).toBe(true), { timeout: 10 * STALL_MILLIS });

/**
 * Waits until `unfinished` finds nothing and `exact` holds. Gives up, and tells what the workflows wait for, when there
 * was no progress for long: how fast this machine is says nothing.
 */
async function converge(unfinished: () => Promise<Life[]>, exact: () => void): Promise<void> {
  let fewest = Number.POSITIVE_INFINITY;
  let since = Date.now();
  for (;;) {
    const left = await unfinished();
    if (left.length < fewest) {
      fewest = left.length;
      since = Date.now();
    }
    const stalled = Date.now() - since > STALL_MILLIS;
    if (left.length > 0 && stalled) {
      await tell(left);
      expect.fail(`${left.length} of ${PROXIES} stay unfinished`);
    }
    if (left.length === 0) {
      try {
        return exact();
      } catch (error) {
        if (stalled) throw error;
      }
    }
    await setTimeout(500);
  }
}

/** Each Proxy is Ready as its spec wants it, and there are exactly the VMs for that. */
const untilExact = (): Promise<void> =>
  converge(
    async () => {
      const proxies = new Map((await system.list()).map((proxy) => [proxy.metadata.name, proxy]));
      return lives.filter((life) => !isReady(life, proxies.get(life.name) as Proxy));
    },
    () => expect(inEngine()).toEqual(lives.map(({ zone, instance }) => `${zone}/${instance}`).sort()),
  );

const untilGone = (): Promise<void> =>
  converge(
    async () => {
      const names = new Set((await system.list()).map(({ metadata }) => metadata.name));
      return lives.filter(({ name }) => names.has(name));
    },
    () => expect(inEngine()).toEqual([]),
  );

const inEngine = (): string[] =>
  engine
    .state()
    .instances.map(({ zone, name }) => `${zone}/${name}`)
    .sort();

/** What the workflows say and wait for; of the first few. */
async function tell(unfinished: Life[]): Promise<void> {
  for (const life of unfinished.slice(0, 5)) {
    const { status } = await system.read(life.name);
    const handle = system.client.workflow.getHandle(life.workflow);
    const { raw, historyLength } = await handle.describe();
    const details = await handle.query('__temporal_workflow_metadata').catch(String);
    const { pendingActivities, pendingWorkflowTask } = raw;
    console.error(JSON.stringify({ life, status, historyLength, details, pendingActivities, pendingWorkflowTask }));
  }
}

function isReady({ zone, instance }: Life, { metadata, spec, status }: Proxy): boolean {
  const vm = engine.machine(zone, instance)?.resource;
  if (!vm) return false;
  const hash = specHash(spec as ManagedSpec, undefined);
  const made = { uid: ownerOf(vm as never), hash: specHashOf(vm as never) };
  const said = {
    hash: metadata.annotations?.[HASH_ANNOTATION],
    phase: status?.phase,
    zone: status?.zone,
    providerID: status?.providerID,
    ip: status?.ip,
    observedGeneration: status?.observedGeneration,
  };
  return (
    isDeepStrictEqual(made, { uid: metadata.uid, hash }) &&
    isDeepStrictEqual(said, {
      hash,
      phase: 'Ready',
      zone,
      providerID: formatProviderID({ project: engine.projectId, zone, name: instance }),
      ip: vm.networkInterfaces[0]?.accessConfigs?.[0]?.natIP,
      observedGeneration: metadata.generation,
    })
  );
}

function expectFewInserts(): void {
  const { inserts } = engine.state();
  for (const { name, instance, generations } of lives) {
    expect(inserts[instance] ?? 0, `VMs made for ${name}`).toBeLessThanOrEqual(generations);
  }
}

const row: FaultRow = {
  fault: `gcp: one call in five of ${PROXIES} proxies fails, is lost or is one too many`,
  times: 0,
  checked: 'created, edited and deleted at once: exact final state, at most one insert per generation',
};

faultTest(
  row,
  async () => {
    console.log(`gcp fleet: FAULTS_SEED=${SEED}`);
    misbehave();
    const tally = callTally(() => engine.state(), PROXIES);
    for (let i = 0; i < PROXIES; i += 1) {
      lives.push({ name: `fleet-${i}`, zone: random.pick(ZONES), instance: '', workflow: '', generations: 1 });
    }
    // A third of them is edited while its first VM is on its way up, and deleted while its last one is being replaced.
    const hasty = lives.filter((_, index) => index % 3 === 0);
    const meanwhile = (work: (life: Life) => Promise<void>) => Promise.all(hasty.map(work));

    await all(create);
    await meanwhile(async (life) => {
      await until(() => engine.state().inserts[life.instance] !== undefined);
      await move(life);
    });
    await untilExact();
    tally.phase('created, a third moved as soon as inserted');
    expectFewInserts();

    const before = engine.state().inserts;
    await all(move);
    await untilExact();
    tally.phase('moved to another zone');
    const expected = lives.map(({ instance }) => [instance, (before[instance] ?? 0) + 1]);
    expect(engine.state().inserts, 'one insert for one edit').toEqual(Object.fromEntries(expected));

    await meanwhile(async (life) => {
      const { zone } = life;
      await move(life);
      await until(() => engine.machine(zone, life.instance)?.leaving !== false);
    });
    await all(({ name }) => system.remove(name));
    await untilGone();
    tally.phase('deleted, a third while it was moving');
    expectFewInserts();
    for (const { workflow } of lives)
      expect(await system.client.workflow.getHandle(workflow).result()).toContain('gone');

    const { faults } = tally.print();
    row.times = faults;
  },
  1_800_000,
);
