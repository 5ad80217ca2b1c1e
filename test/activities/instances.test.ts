import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { describe, expect, it } from 'vitest';
import { createInstances } from '../../activities/instances.ts';
import type { Kubernetes } from '../../activities/kubernetes.ts';
import type { Provider } from '../../activities/providers/contract.ts';
import { type Instance, type InstanceRequest, ProviderError } from '../../model/instance.ts';
import { FINALIZER, type ManagedSpec, type Proxy } from '../../model/proxy.ts';
import { instanceName, specHash } from '../../model/spec-hash.ts';

const REF = { namespace: 'default', name: 'a', uid: 'uid-a' };
const SPEC: ManagedSpec = { provider: 'p', placement: { zone: 'za', zones: ['zb'] }, cloudInit: { inline: 'a text' } };
const HASH = specHash(SPEC, 'a text');

function proxy(changes: { metadata?: object; spec?: object; status?: object } = {}): Proxy {
  const metadata = { ...REF, generation: 1, resourceVersion: '1', finalizers: [FINALIZER], ...changes.metadata };
  return {
    apiVersion: '',
    kind: 'Proxy',
    metadata,
    spec: { ...SPEC, ...changes.spec },
    status: { zone: 'zb', ...changes.status },
  };
}

/** Runs the activity on a cluster where the Proxy is like this, and tells what the provider was asked for. */
async function create(seen: Proxy | undefined, { attempt = 1, zone = 'zb', failure }: CreateOptions = {}) {
  const requests: InstanceRequest[] = [];
  const provider = {
    async create(request: InstanceRequest) {
      requests.push(request);
      if (failure) throw failure;
      return { name: request.name } as Instance;
    },
  } as unknown as Provider;
  const kubernetes = { readProxy: async () => seen } as unknown as Kubernetes;
  const { createInstance } = createInstances({ kubernetes, provider: () => provider });
  const silent = new DefaultLogger('ERROR', () => {});
  const environment = new MockActivityEnvironment({ attempt }, { logger: silent });
  const outcome = await environment.run(createInstance, REF, HASH, false, zone).catch((error: unknown) => error);
  return { outcome, requests };
}

interface CreateOptions {
  attempt?: number;
  zone?: string;
  failure?: ProviderError;
}

describe('an attempt to create an instance', () => {
  it('asks for what was decided on, in the zone that the status names', async () => {
    const { outcome, requests } = await create(proxy());
    expect(outcome).toMatchObject({ name: instanceName(REF.uid) });
    expect(requests).toMatchObject([
      { uid: REF.uid, placement: { zone: 'zb' }, specHash: HASH, cloudInit: 'a text', mayExist: false },
    ]);
  });

  it('knows that an earlier attempt may have made it', async () => {
    const { requests } = await create(proxy(), { attempt: 2 });
    expect(requests).toMatchObject([{ mayExist: true }]);
  });

  it.each<[string, Proxy | undefined]>([
    ['is gone', undefined],
    ['is being deleted', proxy({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })],
    ['lacks our finalizer', proxy({ metadata: { finalizers: [] } })],
    ['was edited', proxy({ spec: { port: 3129 } })],
    ['has another cloud-init', proxy({ spec: { cloudInit: { inline: 'another' } } })],
    ['has moved on to another zone', proxy({ status: { zone: 'za' } })],
    ['has lost its zone', proxy({ status: { zone: undefined } })],
  ])('makes nothing when the Proxy %s meanwhile', async (_, seen) => {
    const { outcome, requests } = await create(seen);
    expect(outcome).toBeUndefined();
    expect(requests).toEqual([]);
  });

  it.each([
    ['Transient', false],
    ['RateLimited', true],
    ['QuotaExceeded', true],
    ['Permanent', true],
  ] as const)('that fails with %s tells the class, and is final: %s', async (kind, final) => {
    const failure = new ProviderError(kind, 'no', { retryAfterMillis: 7, zoneExhausted: true });
    const { outcome } = await create(proxy(), { failure, attempt: 2 });
    expect(outcome).toBeInstanceOf(ApplicationFailure);
    expect(outcome).toMatchObject({
      type: kind,
      nonRetryable: final,
      details: [{ attempt: 2, retryAfterMillis: 7, zoneExhausted: true }],
    });
  });
});
