import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { CoreV1Api, KubeConfig, PatchStrategy, setHeaderOptions } from '@kubernetes/client-node';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { createProvider, parseProviders } from '../../../activities/providers/registry.ts';
import { createKubectl } from '../../../deploy/sandbox/kubectl.ts';
import { obtainParts } from '../../../deploy/sandbox/parts.ts';
import type { ManagedSpec, Proxy } from '../../../model/proxy.ts';
import { never, requestFor, untilState } from './conformance.ts';
import { standInForKubelet } from './kubelet-stand-in.ts';
import { clusterOfThisFile } from './kubernetes-world.ts';

const NAMESPACE = 'egress-proxies';
const ACCOUNT = 'egress-proxy-orchestrator';
const SAMPLES = new URL('../../../deploy/samples/kubernetes/', import.meta.url).pathname;
const cluster = clusterOfThisFile();

const sample = (file: string): Promise<string> => readFile(join(SAMPLES, file), 'utf8');

/** What the sample's program prints, in a file. */
async function kubeconfigOfAccount(kubectl: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'kubernetes-sample-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const env = {
    ...process.env,
    PATH: `${dirname(kubectl)}${delimiter}${process.env.PATH}`,
    KUBECONFIG: cluster().kubeconfig,
    HOME: folder,
  };
  const printing = promisify(execFile)(join(SAMPLES, 'kubeconfig.sh'), { env });
  await Promise.race([printing, fillTokenSecret()]);
  const path = join(folder, 'kubeconfig');
  await writeFile(path, (await printing).stdout);
  return path;
}

/** As the controller manager does. */
async function fillTokenSecret(): Promise<void> {
  const { core } = cluster();
  const ref = { name: ACCOUNT, namespace: NAMESPACE };
  await expect.poll(() => core.readNamespacedSecret(ref).catch(() => undefined), { timeout: 30_000 }).toBeDefined();
  const { status } = await core.createNamespacedServiceAccountToken({
    ...ref,
    body: { spec: { audiences: [], expirationSeconds: 600 } },
  });
  await core.patchNamespacedSecret(
    { ...ref, body: { stringData: { token: status?.token } } },
    setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
  );
}

test('with the rights that the sample grants, and no others, a pod lives a whole life', async () => {
  const parts = await obtainParts({ only: ['kubectl'] });
  const kubectl = createKubectl(parts.kubectl, cluster().kubeconfig);
  await kubectl(['apply', '-f', join(SAMPLES, 'cluster.yaml')], 'Applying the sample');
  standInForKubelet(cluster(), NAMESPACE);
  const kubeconfig = await kubeconfigOfAccount(parts.kubectl);
  const [config] = parseProviders(await sample('providers.yaml'), 'providers.yaml');
  if (config?.type !== 'kubernetes') return expect.unreachable('the sample is of type kubernetes');
  const { spec } = parse(await sample('proxy.yaml')) as Proxy;
  const { provider: name, placement = {} } = spec as ManagedSpec;
  expect(name).toBe(config.name);

  const provider = await createProvider({ ...config, kubeconfig }, console);
  const request = requestFor('a', { placement });
  const made = await provider.create(request, never());
  const { ip } = await untilState(provider, made, 'Running');
  expect((await provider.list(never())).instances).toMatchObject([{ uid: 'a', ip }]);
  await expect.poll(() => provider.delete(request, never()), { timeout: 30_000 }).toBe('gone');

  const restricted = new KubeConfig();
  restricted.loadFromFile(kubeconfig);
  const api = restricted.makeApiClient(CoreV1Api);
  await expect(api.listNamespacedPod({ namespace: 'default' })).rejects.toMatchObject({ code: 403 });
  await expect(api.listNamespacedSecret({ namespace: NAMESPACE })).rejects.toMatchObject({ code: 403 });
});
