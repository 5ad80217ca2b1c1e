import { afterAll, beforeAll, expect, inject, vi } from 'vitest';
import { HASH_ANNOTATION, type ManagedSpec } from '../../model/proxy.ts';
import { type Random, seededRandom } from '../e2e/random.ts';
import type { Fault } from '../integration/scripted-provider.ts';
import { type System, startSystem } from '../integration/system.ts';
import { faultTest, repetitions } from './fault.ts';

const ROUNDS = repetitions(60, 400);
const PROXIES = 12;
const SPEC: ManagedSpec = { provider: 'scripted' };
const PATIENCE = { timeout: 120_000, interval: 200 };
const SEED = Number(process.env.FAULTS_SEED ?? Date.now() % 1_000_000);

/** One Proxy and what may have been made for it. */
interface Life {
  name: string;
  instance: string;
  port: number;
  /** Reasons there were for a new instance, the first included. */
  reasons: number;
}

let system: System;
const lives: Life[] = [];
const timeline: string[] = [];
let created = 0;

beforeAll(async () => {
  system = await startSystem({ kubeconfig: inject('kubeconfig'), temporalAddress: inject('temporalAddress') });
});
afterAll(() => system?.stop());

async function create(): Promise<void> {
  created += 1;
  const name = `storm-${created}`;
  const { instance } = await system.apply(name, SPEC);
  lives.push({ name, instance, port: 3128, reasons: 1 });
}

function faults(random: Random): Fault[] {
  const kinds = ['Transient', 'lost', 'lost', 'QuotaExceeded', 'RateLimited'] as const;
  return Array.from({ length: random.between(1, 4) }, () => random.pick(kinds));
}

/** Something goes wrong, and something is asked for or happens. */
async function round(random: Random): Promise<void> {
  const life = lives[random.between(0, lives.length - 1)] as Life;
  const call = random.pick(['create', 'create', 'get', 'delete'] as const);
  const queue = faults(random);
  system.provider.fail(life.instance, call, [...queue]);
  const act = random.pick(['edit', 'edit', 'edit', 'vanish', 'stop', 'delete'] as const);
  timeline.push(`${life.name}: ${call} fails with ${queue.join(', ')}; ${act}`);
  switch (act) {
    case 'edit':
      life.port = random.between(3200, 3999);
      life.reasons += 1;
      await system.patch(life.name, { spec: { port: life.port } });
      break;
    case 'vanish':
      life.reasons += 1;
      system.provider.instances.delete(life.instance);
      await system.patch(life.name, { spec: { attributes: { touched: String(life.reasons) } } });
      break;
    case 'stop':
      life.reasons += 1;
      system.provider.set(life.instance, { state: 'Stopped' });
      await system.patch(life.name, { spec: { attributes: { touched: String(life.reasons) } } });
      break;
    case 'delete':
      lives.splice(lives.indexOf(life), 1);
      await system.remove(life.name);
      await create();
      break;
  }
}

faultTest(
  {
    fault: 'provider: errors of every class, answers that are lost, instances that vanish or stop',
    times: ROUNDS,
    checked: 'exact final state, never more instances made than reasons for one',
  },
  async () => {
    console.log(`provider storm: FAULTS_SEED=${SEED}`);
    const random = seededRandom(SEED);
    while (lives.length < PROXIES) await create();
    for (let rounds = 0; rounds < ROUNDS; rounds += 1) {
      await round(random);
      await new Promise((resolve) => setTimeout(resolve, random.between(0, 150)));
    }
    for (const { name, instance } of lives) {
      system.provider.heal(instance);
      await system.patch(name, { spec: { attributes: { healed: 'yes' } } });
    }
    const story = () => timeline.join('\n');
    await vi.waitFor(async () => {
      for (const { name, instance, port } of lives) {
        const { status, metadata } = await system.read(name);
        expect(status, `${name}\n${story()}`).toMatchObject({
          phase: 'Ready',
          port,
          observedGeneration: metadata.generation,
        });
        expect(system.provider.instances.get(instance)?.specHash, story()).toBe(
          metadata.annotations?.[HASH_ANNOTATION],
        );
      }
      // What was deleted meanwhile has left nothing behind.
      expect([...system.provider.instances.keys()].sort(), story()).toEqual(
        lives.map(({ instance }) => instance).sort(),
      );
    }, PATIENCE);
    for (const { instance, reasons, name } of lives) {
      expect(system.provider.made(instance), `${name}\n${story()}`).toBeLessThanOrEqual(reasons);
    }
    for (const { name } of lives) await system.remove(name);
    for (const { name } of lives) await system.gone(name);
    expect(system.provider.instances.size).toBe(0);
  },
  600_000,
);
