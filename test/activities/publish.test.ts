import { expect, it } from 'vitest';
import type { Kubernetes } from '../../activities/kubernetes.ts';
import { createPublish } from '../../activities/publish.ts';
import type { Proxy, ProxyStatus } from '../../model/proxy.ts';

const REF = { namespace: 'default', name: 'a', uid: 'uid-a' };

/** A cluster whose CRD keeps only these members of a status. */
function cluster(known: readonly string[]) {
  const proxy = { metadata: { ...REF, generation: 1, resourceVersion: '1' }, spec: { provider: 'p' } } as Proxy;
  const written: ProxyStatus[] = [];
  const kubernetes = {
    readProxy: async () => proxy,
    async patchProxyStatus(_: unknown, { status }: { status: ProxyStatus }) {
      const kept = Object.fromEntries(Object.entries(status).filter(([member]) => known.includes(member)));
      written.push(kept);
      return { ...proxy, status: kept };
    },
    createEvent: async () => {},
  } as unknown as Kubernetes;
  return { written, publish: createPublish({ kubernetes, now: () => 0, warn: () => {} }) };
}

const REPORT = { generation: 1, zone: 'za' };

it('writes what a report says', async () => {
  const { publish, written } = cluster(['zone', 'phase', 'observedGeneration']);
  expect(await publish(REF, REPORT)).toEqual({ phase: 'Pending' });
  expect(written).toEqual([{ zone: 'za', phase: 'Pending', observedGeneration: 1 }]);
});

it('says so, instead of going on, where an older CRD has dropped a part of it', async () => {
  const { publish } = cluster(['phase', 'observedGeneration']);
  await expect(publish(REF, REPORT)).rejects.toThrow(
    "The cluster's CRD of Proxy knows no status.zone: kubectl apply --server-side -f deploy/crds",
  );
});
