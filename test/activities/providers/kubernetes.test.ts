import { readFile } from 'node:fs/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { PROBE_PATH, squidConf } from '../../../activities/providers/squid-conf.ts';
import { UID_LABEL } from '../../../model/instance.ts';
import { errorClass, never, providerConformance, requestFor } from './conformance.ts';
import { standInForKubelet } from './kubelet-stand-in.ts';
import { clusterOfThisFile } from './kubernetes-world.ts';

const cluster = clusterOfThisFile();

providerConformance('kubernetes', async () => {
  const namespace = await cluster().namespace();
  standInForKubelet(cluster(), namespace);
  return {
    provider: cluster().provider(namespace),
    again: async () => cluster().provider(namespace),
  };
});

const a = requestFor('a');

test('a pod runs nothing but Squid, as a restricted pod, with the configuration that it carries', async () => {
  const namespace = await cluster().namespace();
  const { core } = cluster();
  const { labels } = (await core.readNamespace({ name: namespace })).metadata ?? {};
  const body = {
    metadata: { name: namespace, labels: { ...labels, 'pod-security.kubernetes.io/enforce': 'restricted' } },
  };
  await core.replaceNamespace({ name: namespace, body });
  const config = {
    dnsServers: ['10.0.0.53'],
    nodeSelector: { pool: 'egress' },
    tolerations: [{ key: 'egress', operator: 'Exists' }],
  };
  const provider = cluster().provider(namespace, config);
  await provider.create({ ...a, placement: { zone: 'zone-1' }, port: 80 }, never());

  const { metadata, spec } = await core.readNamespacedPod({ namespace, name: a.name });
  const [squid] = spec?.containers ?? [];
  expect(metadata?.labels).toMatchObject({ [UID_LABEL]: 'a' });
  expect(spec).toMatchObject({
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    restartPolicy: 'Always',
    nodeSelector: { pool: 'egress', 'topology.kubernetes.io/zone': 'zone-1' },
    tolerations: expect.arrayContaining([{ key: 'egress', operator: 'Exists' }]),
    securityContext: {
      runAsUser: 13,
      runAsGroup: 13,
      sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '80' }],
    },
  });
  expect(squid).toMatchObject({
    image: 'ubuntu/squid:5.2-22.04_beta',
    imagePullPolicy: 'IfNotPresent',
    resources: { requests: { cpu: '50m', memory: '64Mi' }, limits: { memory: '512Mi' } },
    securityContext: { readOnlyRootFilesystem: true },
    startupProbe: { httpGet: { path: PROBE_PATH, port: 80 } },
    readinessProbe: { httpGet: { path: PROBE_PATH, port: 80 } },
  });
  const [file] = spec?.volumes?.[0]?.downwardAPI?.items ?? [];
  const annotation = /'(.*)'/.exec(file?.fieldRef?.fieldPath ?? '')?.[1] ?? '';
  expect(squid?.command?.at(-1)).toBe(`${squid?.volumeMounts?.[0]?.mountPath}/${file?.path}`);
  const access = { clients: ['10.0.0.0/8'], allowedNetworks: [], httpPorts: [80], connectPorts: [443] };
  expect(metadata?.annotations?.[annotation]).toBe(
    squidConf({ ...access, dnsServers: ['10.0.0.53'], port: 80, answersProbes: true }),
  );
});

test('the cloud-init text is nowhere in the pod', async () => {
  const namespace = await cluster().namespace();
  await cluster()
    .provider(namespace)
    .create({ ...a, cloudInit: 'top-secret-text' }, never());
  const pod = await cluster().core.readNamespacedPod({ namespace, name: a.name });
  expect(JSON.stringify(pod)).not.toContain('top-secret-text');
});

test('Squid runs as the user that the configuration names', async () => {
  const namespace = await cluster().namespace();
  await cluster().provider(namespace, { runAsUser: 1000680000 }).create(a, never());
  const { spec } = await cluster().core.readNamespacedPod({ namespace, name: a.name });
  expect(spec?.securityContext).toMatchObject({ runAsUser: 1000680000, runAsGroup: 1000680000 });
});

test('a list spans pages, and has the pods of its own provider only', async () => {
  const namespace = await cluster().namespace();
  const uids = Array.from({ length: 7 }, (_, index) => `p${index}`);
  const provider = cluster().provider(namespace, {}, { pageSize: 3 });
  const other = cluster().provider(namespace, { name: 'others' });
  for (const uid of uids) await provider.create(requestFor(uid), never());
  await other.create(requestFor('other'), never());
  await stranger(namespace, 'just-a-pod');
  const { instances, unreachable } = await provider.list(never());
  expect(instances.map(({ uid }) => uid).sort()).toEqual(uids);
  expect(unreachable).toEqual([]);
  expect((await other.list(never())).instances).toMatchObject([{ uid: 'other' }]);
});

test('what a quota forbids is Permanent, in the words of the quota', async () => {
  const namespace = await cluster().namespace();
  const { core } = cluster();
  const spec = { hard: { pods: '1' } };
  const quota = await core.createNamespacedResourceQuota({ namespace, body: { metadata: { name: 'few' }, spec } });
  // As the controller manager does; the API server enforces what the status says.
  const status = { hard: { pods: '1' }, used: { pods: '0' } };
  await core.replaceNamespacedResourceQuotaStatus({ name: 'few', namespace, body: { ...quota, status } });
  const provider = cluster().provider(namespace);
  await provider.create(a, never());
  const second = provider.create(requestFor('b'), never());
  expect(await errorClass(second)).toBe('Permanent');
  await expect(second).rejects.toThrow('exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1');
});

test('a namespace that does not exist, and a pod that the API server refuses, are Permanent and say why', async () => {
  const nowhere = cluster().provider('nowhere').create(a, never());
  expect(await errorClass(nowhere)).toBe('Permanent');
  await expect(nowhere).rejects.toThrow('no namespace "nowhere" in the cluster of the pods: create it, then edit or');
  const namespace = await cluster().namespace();
  const invalid = cluster()
    .provider(namespace, { nodeSelector: { 'no/such/key': 'x' } })
    .create(a, never());
  expect(await errorClass(invalid)).toBe('Permanent');
  await expect(invalid).rejects.toThrow('no/such/key');
});

test('in a namespace that does not exist, pods are gone, and there are none', async () => {
  const provider = cluster().provider('nowhere');
  expect(await errorClass(provider.get(a, never()))).toBe('NotFound');
  expect(await provider.delete(a, never())).toBe('gone');
  expect(await provider.list(never())).toEqual({ instances: [], unreachable: [] });
});

test("a pod of a stranger's under our name is left alone, also when it comes while ours is being deleted", async () => {
  const namespace = await cluster().namespace();
  const { core, pods } = cluster();
  await stranger(namespace, a.name);
  const provider = cluster().provider(namespace);
  const refused = provider.create(a, never());
  expect(await errorClass(refused)).toBe('Permanent');
  await expect(refused).rejects.toThrow(`${namespace}/${a.name} is not one of ours`);
  expect(await provider.delete(a, never())).toBe('gone');
  await core.deleteNamespacedPod({ namespace, name: a.name });

  await provider.create(a, never());
  const late = cluster().provider(
    namespace,
    {},
    {
      pods: {
        ...pods,
        async delete(...call) {
          await core.deleteNamespacedPod({ namespace, name: a.name });
          await stranger(namespace, a.name);
          return pods.delete(...call);
        },
      },
    },
  );
  expect(await errorClass(late.delete(a, never()))).toBe('Transient');
  expect(await late.delete(a, never())).toBe('gone');
  expect((await core.readNamespacedPod({ namespace, name: a.name })).metadata?.labels).toEqual({ is: 'stranger' });
});

test('an instance is found by its providerID when the configuration names another namespace by now', async () => {
  const before = await cluster().namespace();
  const { providerID } = await cluster().provider(before).create(a, never());
  expect(providerID).toBe(`kubernetes://pods/${before}/${a.name}`);
  const provider = cluster().provider(await cluster().namespace());
  expect(await errorClass(provider.get(a, never()))).toBe('NotFound');
  expect(await provider.get({ ...a, providerID }, never())).toMatchObject({ providerID, uid: 'a' });
  expect(await provider.delete({ ...a, providerID }, never())).toBe('deleting');
  expect(await provider.delete({ ...a, providerID }, never())).toBe('gone');
});

test('a kubeconfig without the context, or none at all, is Permanent and says what there is', async () => {
  expect(() => cluster().provider('default', { context: 'mars' })).toThrow(
    'has no context "mars"; it has egress-proxy-sandbox',
  );
  expect(() => cluster().provider('default', { kubeconfig: '/nowhere/kubeconfig' })).toThrow('/nowhere/kubeconfig');
  expect(await readFile(cluster().kubeconfig, 'utf8')).toContain('egress-proxy-sandbox');
});

test('no kubeconfig at all is Permanent, and says where one was looked for', () => {
  vi.stubEnv('KUBECONFIG', undefined);
  vi.stubEnv('HOME', '/nowhere');
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(() => cluster().provider('default', { kubeconfig: undefined })).toThrow(
    expect.objectContaining({
      class: 'Permanent',
      message: expect.stringMatching(/KUBECONFIG is not set, .* ~\/\.kube\/config .* service account/),
    }),
  );
});

async function stranger(namespace: string, name: string): Promise<void> {
  const body = { metadata: { name, labels: { is: 'stranger' } }, spec: { containers: [{ name: 'x', image: 'x' }] } };
  await cluster().core.createNamespacedPod({ namespace, body });
}
