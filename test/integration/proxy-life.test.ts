import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { FINALIZER, HASH_ANNOTATION, type ManagedSpec } from '../../model/proxy.ts';
import type { Fault } from './scripted-provider.ts';
import { type System, startSystem } from './system.ts';

const SPEC: ManagedSpec = { provider: 'scripted' };

let system: System;
beforeAll(async () => {
  system = await startSystem({ kubeconfig: inject('kubeconfig'), temporalAddress: inject('temporalAddress') });
});
afterAll(() => system?.stop());

const createsOf = (instance: string) => system.provider.calls.filter((call) => call === `create ${instance}`).length;

/** A CR whose provider calls are scripted before any is made: it starts with an unknown provider's worth of patience. */
async function applyFaulty(name: string, operation: 'create' | 'get' | 'delete', faults: Fault[], repeat?: 'for ever') {
  // The name of the instance follows from the UID, which only the API server knows: cloud-init that is not there yet
  // holds the first pass up until the script is in place.
  const secretRef = { name: `${name}-secret`, key: 'text' };
  const applied = await system.apply(name, { ...SPEC, cloudInit: { secretRef } });
  system.provider.fail(applied.instance, operation, faults, repeat);
  await system.patch(name, { spec: { cloudInit: null } });
  return applied;
}

describe('a managed proxy', () => {
  it('is created once, recorded, probed, and leaves nothing behind', async () => {
    const { instance, workflow } = await system.apply('plain', SPEC);
    const proxy = await system.ready('plain');
    expect(proxy.metadata.finalizers).toEqual([FINALIZER]);
    expect(proxy.metadata.annotations?.[HASH_ANNOTATION]).toBe(system.provider.instances.get(instance)?.specHash);
    expect(proxy.status).toMatchObject({
      providerID: `scripted://${instance}`,
      ip: '127.99.0.1',
      port: 3128,
      incarnation: 1,
    });
    expect(createsOf(instance)).toBe(1);

    await system.remove('plain');
    await system.gone('plain');
    expect(system.provider.instances.has(instance)).toBe(false);
    expect(await system.client.workflow.getHandle(workflow).result()).toContain('gone');
  });

  it('is waited for while it is on its way up, and made anew when that takes too long', async () => {
    system.provider.begin('Provisioning');
    const { instance } = await system.apply('slow', SPEC);
    await system.provisioned('slow', 'False/Provisioning');
    await vi.waitFor(() => expect(system.provider.made(instance)).toBe(2), { timeout: 20_000 });
    system.provider.begin('Running');
    system.provider.set(instance, { state: 'Running' });
    await system.ready('slow');
    await system.remove('slow');
    await system.gone('slow');
  });

  it('waits for NotFound between the old instance and the new one', async () => {
    system.provider.linger(3);
    const { instance } = await system.apply('replaced', SPEC);
    await system.ready('replaced', 1);
    const before = system.provider.calls.length;
    await system.patch('replaced', { spec: { port: 3200 } });
    await system.ready('replaced', 2);
    const calls = system.provider.calls.slice(before).filter((call) => call.endsWith(instance));
    const recreated = calls.indexOf(`create ${instance}`);
    expect(calls.filter((call) => call.startsWith('delete'))).toHaveLength(3);
    expect(calls[recreated - 1]).toBe(`get ${instance}`);
    expect(calls.slice(recreated + 1).some((call) => call.startsWith('delete'))).toBe(false);
    system.provider.linger(1);
    await system.remove('replaced');
    await system.gone('replaced');
  });

  it.each<[string, Fault[], string]>([
    ['quota', ['QuotaExceeded', 'QuotaExceeded'], 'False/QuotaExceeded'],
    ['rate', ['RateLimited', 'RateLimited'], 'False/RateLimited'],
    ['transient', ['Transient', 'Transient', 'Transient', 'Transient'], 'Unknown/TransientError'],
  ])('gets over a create that fails with %s, and says so meanwhile', async (name, faults, said) => {
    const { instance } = await applyFaulty(name, 'create', [...faults], 'for ever');
    await system.provisioned(name, said);
    system.provider.heal(instance);
    await system.ready(name, 1);
    expect(system.provider.made(instance)).toBe(1);
    await system.remove(name);
    await system.gone(name);
  });

  it('stays silent after a permanent error until its spec is edited', async () => {
    const { instance } = await applyFaulty('permanent', 'create', ['Permanent'], 'for ever');
    const failed = await system.provisioned('permanent', 'False/PermanentError');
    expect(failed.status?.phase).toBe('Failed');
    const tries = createsOf(instance);
    system.provider.heal(instance);
    await system.patch('permanent', { metadata: { labels: { touched: 'yes' } } });
    expect(createsOf(instance)).toBe(tries);
    await system.patch('permanent', { spec: { attributes: { country: 'de' } } });
    await system.ready('permanent');
    await system.remove('permanent');
    await system.gone('permanent');
  });

  it('or until a replacement is asked for', async () => {
    const { instance, workflow } = await applyFaulty('asked', 'create', ['Permanent'], 'for ever');
    await system.provisioned('asked', 'False/PermanentError');
    system.provider.heal(instance);
    const handle = system.client.workflow.getHandle(workflow);
    expect(await handle.executeUpdate('replace')).toContain('will be replaced');
    await system.ready('asked', 1);
    await handle.executeUpdate('replace');
    await system.ready('asked', 2);
    expect(system.provider.made(instance)).toBe(2);
    await system.remove('asked');
    await system.gone('asked');
  });

  it('a create whose answer was lost, then an edit, ends in a replacement: never in the old machine under the new hash', async () => {
    const { instance } = await applyFaulty('lost', 'create', ['lost', 'Transient', 'Transient'], 'for ever');
    await system.provisioned('lost', 'Unknown/TransientError');
    const old = system.provider.instances.get(instance)?.specHash;
    expect(old).toBeDefined();
    await system.patch('lost', { spec: { port: 3201 } });
    system.provider.heal(instance);
    const proxy = await system.ready('lost', 2);
    expect(proxy.status?.port).toBe(3201);
    const hash = system.provider.instances.get(instance)?.specHash;
    expect(hash).not.toBe(old);
    expect(proxy.metadata.annotations?.[HASH_ANNOTATION]).toBe(hash);
    expect(system.provider.made(instance)).toBe(2);
    await system.remove('lost');
    await system.gone('lost');
  });

  it('deleted after a create whose answer was lost: the instance is found by its name and goes as well', async () => {
    const { instance } = await applyFaulty('orphan', 'create', ['lost', 'Transient', 'Transient'], 'for ever');
    await system.provisioned('orphan', 'Unknown/TransientError');
    expect(system.provider.instances.has(instance)).toBe(true);
    await system.remove('orphan');
    await system.gone('orphan');
    expect(system.provider.instances.has(instance)).toBe(false);
  });

  it('deleted where every create was refused: goes without asking the provider', async () => {
    const { instance } = await applyFaulty('refused', 'create', ['Permanent'], 'for ever');
    await system.provisioned('refused', 'False/PermanentError');
    system.provider.fail(instance, 'get', ['Permanent'], 'for ever');
    system.provider.fail(instance, 'delete', ['Permanent'], 'for ever');
    await system.remove('refused');
    await system.gone('refused');
  });

  it('never latches while deleting: a permanent error is retried, visibly, until the provider lets it go', async () => {
    const { instance } = await system.apply('stubborn', SPEC);
    await system.ready('stubborn');
    system.provider.fail(instance, 'delete', ['Permanent'], 'for ever');
    await system.remove('stubborn');
    await vi.waitFor(async () => {
      const { status } = await system.read('stubborn');
      expect(status?.phase).toBe('Deleting');
      expect(status?.conditions?.[0]?.message).toContain('trying again: scripted Permanent');
    }, 20_000);
    system.provider.heal(instance);
    await system.gone('stubborn');
    expect(system.provider.instances.has(instance)).toBe(false);
  });

  it("never adopts a stranger's instance, and never deletes it", async () => {
    const secretRef = { name: 'none', key: 'none' };
    const { instance } = await system.apply('stranger', { ...SPEC, cloudInit: { secretRef } });
    const theirs = {
      name: instance,
      providerID: 'x',
      uid: 'someone else',
      createdAt: '',
      specHash: '',
      state: 'Running',
    } as const;
    system.provider.instances.set(instance, theirs);
    await system.patch('stranger', { spec: { cloudInit: null } });
    const failed = await system.provisioned('stranger', 'False/PermanentError');
    expect(failed.status?.conditions?.[0]?.message).toContain('not ours');
    await system.remove('stranger');
    await system.gone('stranger');
    expect(system.provider.instances.get(instance)).toBe(theirs);
  });

  it('a provider that does not answer takes nothing from a proxy that runs', async () => {
    const { instance } = await system.apply('steady', SPEC);
    await system.ready('steady');
    system.provider.fail(instance, 'get', ['Transient'], 'for ever');
    await system.patch('steady', { spec: { attributes: { country: 'de' } } });
    const proxy = await system.provisioned('steady', 'True/TransientError');
    expect(proxy.status?.phase).toBe('Ready');
    system.provider.heal(instance);
    await system.provisioned('steady', 'True/Created');
    await system.remove('steady');
    await system.gone('steady');
  });

  it('an instance that stopped or vanished is made anew', async () => {
    const { instance } = await system.apply('mortal', SPEC);
    await system.ready('mortal', 1);
    system.provider.set(instance, { state: 'Stopped' });
    await system.patch('mortal', { spec: { attributes: { touched: '1' } } });
    await system.ready('mortal', 2);
    system.provider.instances.delete(instance);
    await system.patch('mortal', { spec: { attributes: { touched: '2' } } });
    await system.ready('mortal', 3);
    expect(system.provider.made(instance)).toBe(3);
    await system.remove('mortal');
    await system.gone('mortal');
  });
});

describe('an external proxy', () => {
  it('is probed at its endpoint, without finalizer or provider call', async () => {
    const before = system.provider.calls.length;
    const { workflow } = await system.apply('external', {
      mode: 'External',
      endpoint: { host: '127.99.9.9', port: 8888 },
    });
    const proxy = await system.ready('external');
    expect(proxy.metadata.finalizers).toBeUndefined();
    expect(proxy.status).toMatchObject({ ip: '127.99.9.9', port: 8888 });
    const refused = system.client.workflow.getHandle(workflow).executeUpdate('replace');
    await expect(refused).rejects.toMatchObject({ cause: { message: expect.stringContaining('no instance of ours') } });
    await system.remove('external');
    await system.gone('external');
    expect(await system.client.workflow.getHandle(workflow).result()).toContain('gone');
    expect(system.provider.calls.slice(before)).toEqual([]);
  });
});
