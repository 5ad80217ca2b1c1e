import { expect, test, vi } from 'vitest';
import { CLOUD_INIT_LABEL, type Proxy } from '../../model/proxy.ts';
import { REPLACE } from '../../model/workflow-names.ts';
import { instanceOf, type Matches, PROBED_OFTEN, provisionedReason, readyAt } from './fleet.ts';
import { sampleSquids, squidOf } from './squids.ts';
import { clientSeenThrough } from './through-proxy.ts';
import { sandboxOfThisFile } from './world.ts';

const world = sandboxOfThisFile('replacement');
const LABELLED = { [CLOUD_INIT_LABEL]: 'true' };
const fromSecret = (name: string) => ({ secretRef: { name, key: 'user-data' } });

/** A Ready proxy of the suite's own, and the pid of its Squid. */
async function readyProxy(name: string, spec: object = {}): Promise<{ proxy: Proxy; pid: number }> {
  const { fleet, sandbox } = world();
  const created = await fleet.create(name, { provider: 'local', health: PROBED_OFTEN, ...spec });
  const proxy = await fleet.until(name, readyAt(created));
  return { proxy, pid: squidOf(sandbox.hostState, instanceOf(proxy)) };
}

const nextIncarnation =
  (before: Proxy): Matches =>
  (proxy) =>
    readyAt(before)(proxy) && proxy.status?.incarnation === (before.status?.incarnation ?? 0) + 1;

/** Waits for the replacement that `cause` brings, and checks what holds of every one. */
async function expectReplacement(before: { proxy: Proxy; pid: number }, cause: () => Promise<unknown>): Promise<Proxy> {
  const { fleet, sandbox } = world();
  const { name } = before.proxy.metadata;
  const instance = instanceOf(before.proxy);
  const samples = sampleSquids(sandbox.hostState);
  try {
    await cause();
    const after = await fleet.until(name, nextIncarnation(before.proxy));
    expect(after.status?.providerID).toBe(before.proxy.status?.providerID);
    const pid = squidOf(sandbox.hostState, instance);
    expect(pid).not.toBe(before.pid);
    return after;
  } finally {
    const { doubles, pids } = samples.stop();
    expect(doubles).toEqual([]);
    // The old one and the new one, and none in between.
    expect(pids.get(instance)?.size).toBe(2);
  }
}

test('an edit of the port replaces the instance under the same name, with at most one Squid at every sample', async () => {
  const { fleet, settings } = world();
  const before = await readyProxy('port');
  const after = await expectReplacement(before, () => fleet.edit('port', { port: 3199 }));
  expect(after.status).toMatchObject({ port: 3199, observedGeneration: before.proxy.metadata.generation + 1 });
  expect(fleet.watch.versions('port').map(({ status }) => status?.phase)).toContain('Replacing');
  expect(await clientSeenThrough(`http://${after.status?.ip}:3199`, settings.PROBE_TARGET_HTTP)).toBe(after.status?.ip);
});

test('edits of attributes, lease limits, cordon and health replace nothing, and a cordoned proxy is not leased', async () => {
  const { fleet, leases, sandbox } = world();
  const { proxy, pid } = await readyProxy('edits', { attributes: { group: 'edits' } });
  const selector = { selector: { group: 'edited' } };
  for (const spec of [
    { attributes: { group: 'edited' } },
    { lease: { maxConcurrent: 3 } },
    { health: { failureThreshold: 2, intervalSeconds: 2 } },
  ]) {
    await fleet.until('edits', readyAt(await fleet.edit('edits', spec)));
  }
  const lease = await leases.take(selector);
  expect(lease.status).toBe(201);

  await fleet.until('edits', readyAt(await fleet.edit('edits', { cordoned: true })));
  await vi.waitFor(async () =>
    expect(await leases.take(selector)).toMatchObject({ status: 409, body: { considered: 0 } }),
  );
  expect((await leases.renew(lease.body.leaseID ?? '', 30)).status).toBe(200);
  await fleet.until('edits', readyAt(await fleet.edit('edits', { cordoned: false })));
  await vi.waitFor(async () => expect((await leases.take(selector)).status).toBe(201));

  expect(squidOf(sandbox.hostState, instanceOf(proxy))).toBe(pid);
  expect(fleet.watch.current('edits')?.status?.incarnation).toBe(proxy.status?.incarnation);
});

test('rotating its cloud-init Secret replaces the instance, though the spec is untouched', async () => {
  const { fleet } = world();
  await fleet.putSecret('rotated', { 'user-data': '#cloud-config\n# one' }, LABELLED);
  const before = await readyProxy('rotation', { cloudInit: fromSecret('rotated') });
  const after = await expectReplacement(before, () =>
    fleet.putSecret('rotated', { 'user-data': '#cloud-config\n# two' }, LABELLED),
  );
  expect(after.metadata.generation).toBe(before.proxy.metadata.generation);
});

test('a Secret without the label is a CloudInitError; labelling it heals the Proxy by itself', async () => {
  const { fleet } = world();
  await fleet.putSecret('unseen', { 'user-data': '#cloud-config' });
  const created = await fleet.create('unlabelled', {
    provider: 'local',
    cloudInit: fromSecret('unseen'),
    health: PROBED_OFTEN,
  });
  const stuck = await fleet.until('unlabelled', (proxy) => provisionedReason(proxy) === 'CloudInitError');
  expect(stuck.status).toMatchObject({ phase: 'Pending' });
  expect(stuck.status?.providerID).toBeUndefined();
  await fleet.putSecret('unseen', { 'user-data': '#cloud-config' }, LABELLED);
  await fleet.until('unlabelled', readyAt(created));
});

test('the workflow update "replace" replaces the instance', async () => {
  const before = await readyProxy('asked');
  await expectReplacement(before, () => world().workflowOf(before.proxy).executeUpdate(REPLACE));
});

test('a Squid that is killed is noticed by the probes, found stopped and replaced', async () => {
  const before = await readyProxy('killed');
  await expectReplacement(before, async () => process.kill(before.pid, 'SIGKILL'));
});
