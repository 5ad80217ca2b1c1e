import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, expect } from 'vitest';
import { FINALIZER, type Proxy } from '../../model/proxy.ts';
import { instanceOf, PROBED_OFTEN, readyAt } from '../e2e/fleet.ts';
import { type Orchestrator, orchestratorEnv, runOrchestrator } from '../e2e/orchestrator.ts';
import { type SquidSamples, sampleSquids, squidOf, squidsOf } from '../e2e/squids.ts';
import { sandboxOfThisFile } from '../e2e/world.ts';
import type { CrashPoint, Effect, Side } from './crash-points.ts';
import { faultTest } from './fault.ts';

type Phase = 'creating' | 'replacing' | 'deleting';

/** Every boundary between two effects, in every phase of a life that has them. */
const EFFECTS: Record<Phase, Effect[]> = {
  creating: ['add finalizer', 'create', 'write hash annotation', 'write status', 'emit event'],
  replacing: ['delete', 'write hash annotation', 'write status', 'emit event', 'create'],
  deleting: ['write status', 'delete', 'remove finalizer'],
};
const POINTS = (['creating', 'replacing', 'deleting'] as const).flatMap((phase) =>
  EFFECTS[phase].flatMap((effect) =>
    (['before', 'after'] as const).map((side) => ({ phase, effect, side, name: nameOf(phase, effect, side) })),
  ),
);
const PORT = 3477;
const SPEC = { provider: 'local', health: PROBED_OFTEN };

const world = sandboxOfThisFile('crash-points', { script: 'test/e2e/sandbox-without-orchestrator.ts' });
const proxies = new Map<string, Proxy>();
let samples: SquidSamples | undefined;
let orchestrator: Orchestrator | undefined;

/**
 * One orchestrator after the other: each dies at its point, and meanwhile makes up for the death of the one before it. The
 * last one lives.
 */
beforeAll(async () => {
  const { fleet, sandbox } = world();
  const env = await orchestratorEnv(sandbox);
  const sampler = sampleSquids(sandbox.hostState);
  orchestrator = runOrchestrator([], env);
  const standing = POINTS.filter(({ phase }) => phase !== 'creating');
  for (const { name } of standing) proxies.set(name, await fleet.create(name, SPEC));
  for (const { name } of standing) await fleet.until(name, readyAt(proxies.get(name) as Proxy));
  orchestrator.kill('SIGKILL');
  await orchestrator.exited;

  for (const { phase, effect, side, name } of POINTS) {
    const proxy = await act(phase, name);
    const point: CrashPoint = { effect, side, proxy: { name, uid: proxy.metadata.uid } };
    orchestrator = runOrchestrator(
      [],
      { ...env, CRASH_POINT: JSON.stringify(point) },
      'test/faults/crashing-orchestrator.ts',
    );
    const end = await orchestrator.exited;
    if (end !== 'SIGKILL') throw new Error(`${name}: the orchestrator ended with ${end}:\n${orchestrator.output()}`);
  }
  orchestrator = runOrchestrator([], env);
  await orchestrator.ready();
  for (const { name, phase } of POINTS) {
    if (phase === 'deleting') await fleet.gone(name);
    else await fleet.until(name, readyAt(proxies.get(name) as Proxy));
  }
  samples = sampler.stop();
}, 600_000);

afterAll(async () => {
  orchestrator?.kill('SIGTERM');
  await orchestrator?.exited;
});

async function act(phase: Phase, name: string): Promise<Proxy> {
  const { fleet } = world();
  if (phase === 'creating') proxies.set(name, await fleet.create(name, SPEC));
  if (phase === 'replacing') proxies.set(name, await fleet.edit(name, { port: PORT }));
  if (phase === 'deleting') await fleet.remove(name);
  return proxies.get(name) as Proxy;
}

for (const { phase, effect, side, name } of POINTS) {
  const checked = phase === 'deleting' ? 'gone, no instance left' : 'one instance, status true';
  faultTest({ fault: `killed while ${phase}, ${side}: ${effect}`, times: 1, checked }, async () => {
    const { fleet, sandbox } = world();
    const instance = instanceOf(proxies.get(name) as Proxy);
    expect(samples?.doubles.filter((double) => double.instance === instance)).toEqual([]);
    if (phase === 'deleting') {
      expect(fleet.watch.current(name)).toBeUndefined();
      expect([...squidsOf(sandbox.hostState).keys(), ...readdirSync(sandbox.hostState)]).not.toContain(instance);
      return;
    }
    const { metadata, status } = fleet.watch.current(name) as Proxy;
    expect(metadata.finalizers).toEqual([FINALIZER]);
    expect(status).toMatchObject({ phase: 'Ready', port: phase === 'replacing' ? PORT : 3128 });
    expect(squidOf(sandbox.hostState, instance)).toBeGreaterThan(0);
  });
}

function nameOf(phase: Phase, effect: Effect, side: Side): string {
  return `${phase}-${side}-${effect}`.replaceAll(' ', '-');
}
