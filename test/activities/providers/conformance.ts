import { describe, expect, test } from 'vitest';
import type { Provider } from '../../../activities/providers/contract.ts';
import { type Instance, type InstanceRef, type InstanceRequest, ProviderError } from '../../../model/instance.ts';
import { instanceName } from '../../../model/spec-hash.ts';

/** One provider with a world of its own behind it, which its maker removes with `onTestFinished`. */
export interface ProviderUnderTest {
  provider: Provider;
  /** Another provider object on the same world, as after a kill -9 of the worker. */
  again(): Promise<Provider>;
  /** What this provider needs in a request besides its identity. */
  defaults?: Partial<InstanceRequest>;
}

/** A signal that never aborts. */
export const never = (): AbortSignal => new AbortController().signal;

export function requestFor(uid: string, more: Partial<InstanceRequest> = {}): InstanceRequest {
  const identity = { name: instanceName(uid), uid, namespace: 'default', proxyName: uid };
  return { ...identity, placement: {}, port: 3128, specHash: `hash-of-${uid}`, ...more };
}

/** The class of the ProviderError that the call must end in. */
export async function errorClass(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    (value) => expect.unreachable(`it answered ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ProviderError);
  return (error as ProviderError).class;
}

/** Waits until the instance is in the state, and returns what the provider then said of it. */
export async function untilState(provider: Provider, ref: InstanceRef, state: Instance['state']): Promise<Instance> {
  let last: Instance | undefined;
  const look = async () => {
    last = await provider.get(ref, never());
    return last.state;
  };
  await expect.poll(look, { timeout: 60_000 }).toBe(state);
  return last as unknown as Instance;
}

async function untilGone(provider: Provider, ref: InstanceRef): Promise<void> {
  await expect.poll(() => provider.delete(ref, never()), { timeout: 60_000 }).toBe('gone');
}

/** One and the same instance. Of when it was made, the create that made it may know a little less than a later look. */
function expectSame(one: Instance, other: Instance): void {
  expect(one.providerID).toBe(other.providerID);
  expect(Math.abs(Date.parse(one.createdAt) - Date.parse(other.createdAt))).toBeLessThan(2_000);
}

/** What the contract promises of every provider. `make` is called once per test. */
export function providerConformance(name: string, make: () => Promise<ProviderUnderTest>): void {
  const setUp = async () => {
    const subject = await make();
    const request = (uid: string, more: Partial<InstanceRequest> = {}) =>
      requestFor(uid, { ...subject.defaults, ...more });
    return { ...subject, request };
  };

  describe(`${name}: the provider contract`, () => {
    test('an instance that was never made is NotFound, and gone when deleted', async () => {
      const { provider, request } = await setUp();
      expect(await errorClass(provider.get(request('a'), never()))).toBe('NotFound');
      expect(await provider.delete(request('a'), never())).toBe('gone');
      expect(await provider.list(never())).toEqual({ instances: [], unreachable: [] });
    });

    test('create makes an instance that runs, and says whose it is and what it was made from', async () => {
      const { provider, request } = await setUp();
      const wanted = request('a');
      const before = Date.now() - 1_000;
      const made = await provider.create(wanted, never());
      const running = await untilState(provider, made, 'Running');
      expect(running).toMatchObject({
        name: wanted.name,
        uid: 'a',
        specHash: wanted.specHash,
        providerID: made.providerID,
      });
      expect(running.ip).toBeTruthy();
      expect(Date.parse(running.createdAt)).toBeGreaterThanOrEqual(before);
      const { instances, unreachable } = await provider.list(never());
      expect(instances).toMatchObject([{ name: wanted.name, uid: 'a', state: 'Running', ip: running.ip }]);
      expect(unreachable).toEqual([]);
    });

    test('create again, and twice at once, finds the one instance', async () => {
      const { provider, request } = await setUp();
      const both = await Promise.all([provider.create(request('a'), never()), provider.create(request('a'), never())]);
      const third = await provider.create(request('a'), never());
      for (const made of both) expectSame(made, third);
      expect((await provider.list(never())).instances).toHaveLength(1);
    });

    test('create with another hash returns what is there, with the hash that it was made from', async () => {
      const { provider, request } = await setUp();
      await provider.create(request('a'), never());
      expect((await provider.create(request('a', { specHash: 'another' }), never())).specHash).toBe('hash-of-a');
    });

    test("a stranger's instance is never adopted and never deleted", async () => {
      const { provider, request } = await setUp();
      await provider.create(request('a'), never());
      const stranger = request('b', { name: request('a').name });
      expect(await errorClass(provider.create(stranger, never()))).toBe('Permanent');
      expect(await errorClass(provider.get(stranger, never()))).toBe('Permanent');
      expect(await provider.delete(stranger, never())).toBe('gone');
      expect((await untilState(provider, request('a'), 'Running')).uid).toBe('a');
    });

    test('delete leaves nothing, and can be repeated', async () => {
      const { provider, request } = await setUp();
      await provider.create(request('a'), never());
      await untilGone(provider, request('a'));
      await untilGone(provider, request('a'));
      expect(await errorClass(provider.get(request('a'), never()))).toBe('NotFound');
      expect((await provider.list(never())).instances).toEqual([]);
    });

    test('after a delete, the same name can be made again from something else', async () => {
      const { provider, request } = await setUp();
      await provider.create(request('a'), never());
      await untilGone(provider, request('a'));
      expect((await provider.create(request('a', { specHash: 'new' }), never())).specHash).toBe('new');
      await untilState(provider, request('a'), 'Running');
    });

    test('another worker finds, lists and deletes what the first has made', async () => {
      const { provider, request, again } = await setUp();
      const made = await provider.create(request('a'), never());
      await untilState(provider, request('a'), 'Running');
      const second = await again();
      expectSame(await second.create(request('a'), never()), made);
      expect((await second.list(never())).instances).toHaveLength(1);
      await untilGone(second, request('a'));
      expect(await errorClass(provider.get(request('a'), never()))).toBe('NotFound');
    });

    test('an instance that may exist is found by the next create, and made if there is none', async () => {
      const { provider, request } = await setUp();
      const made = await provider.create(request('a', { mayExist: true }), never());
      expectSame(await provider.create(request('a', { mayExist: true }), never()), made);
      expect((await provider.list(never())).instances).toHaveLength(1);
    });

    test('what is found by name is found by providerID as well, and deleted by it', async () => {
      const { provider, request } = await setUp();
      const { providerID, name, uid } = await provider.create(request('a'), never());
      const ref = { providerID, name, uid };
      expect((await untilState(provider, ref, 'Running')).providerID).toBe(providerID);
      expect((await untilState(provider, request('a'), 'Running')).providerID).toBe(providerID);
      await untilGone(provider, ref);
      expect(await errorClass(provider.get(ref, never()))).toBe('NotFound');
    });

    test('a call that is cancelled is a Transient error', async () => {
      const { provider, request } = await setUp();
      const cancelled = AbortSignal.abort();
      expect(await errorClass(provider.create(request('a'), cancelled))).toBe('Transient');
      expect(await errorClass(provider.get(request('a'), cancelled))).toBe('Transient');
      expect(await errorClass(provider.list(cancelled))).toBe('Transient');
    });
  });
}
