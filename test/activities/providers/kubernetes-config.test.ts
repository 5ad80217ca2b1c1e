import { expect, test } from 'vitest';
import { kubernetesConfig } from '../../../activities/providers/kubernetes/config.ts';

const least = { name: 'pods', type: 'kubernetes', namespace: 'egress', clients: ['10.0.0.0/8'] };

test('the least configuration has safe defaults, but none for who may be a client', () => {
  expect(kubernetesConfig.parse(least)).toMatchObject({
    image: 'ubuntu/squid:5.2-22.04_beta',
    imagePullPolicy: 'IfNotPresent',
    resources: { requests: { cpu: '50m', memory: '64Mi' }, limits: { memory: '512Mi' } },
    allowedNetworks: [],
    connectPorts: [443],
  });
  expect(kubernetesConfig.safeParse({ ...least, clients: [] }).success).toBe(false);
});

test('what a ResourceQuota may ask for can be given: amounts as text or numbers', () => {
  const resources = { limits: { cpu: 1, memory: '1.5Gi', 'ephemeral-storage': '100M' } };
  expect(kubernetesConfig.parse({ ...least, resources }).resources).toEqual({
    requests: { cpu: '50m', memory: '64Mi' },
    limits: resources.limits,
  });
});

test.each([
  [{ namespace: 'Egress' }, 'namespace'],
  [{ kubeconfig: 'kubeconfig' }, 'kubeconfig'],
  [{ imagePullPolicy: 'Sometimes' }, 'imagePullPolicy'],
  [{ resources: { limits: { memory: '64 MB' } } }, 'resources.limits.memory'],
  [{ tolerations: [{ effect: 'NoRun' }] }, 'tolerations.0.effect'],
  [{ tolerations: [{ keys: 'egress' }] }, 'tolerations.0'],
  [{ tolerations: [{ operator: 'Exists' }] }, 'tolerations.0'],
  [{ tolerations: [{ operator: 'Exists', effect: 'NoExecute' }] }, 'tolerations.0'],
  [{ tolerations: [{ key: 'node.kubernetes.io/unreachable', operator: 'Exists' }] }, 'tolerations.0'],
  [{ tolerations: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }] }, 'tolerations.0'],
  [{ runAsUser: 0 }, 'runAsUser'],
  [{ nope: 1 }, ''],
])('refuses %j, by its path', (mistake, path) => {
  const { error } = kubernetesConfig.safeParse({ ...least, ...mistake });
  expect(error?.issues.map((issue) => issue.path.join('.'))).toEqual([path]);
});

test('tolerates every taint but the loss of its node for ever, of which it says how to put it', () => {
  const all = { operator: 'Exists' };
  const { error } = kubernetesConfig.safeParse({ ...least, tolerations: [all] });
  expect(error?.issues[0]?.message).toContain('add effect: NoExecute with tolerationSeconds: 300');
  const tolerations = [
    { ...all, effect: 'NoSchedule' },
    { ...all, effect: 'NoExecute', tolerationSeconds: 300 },
    { ...all, key: 'dedicated' },
  ];
  expect(kubernetesConfig.parse({ ...least, tolerations }).tolerations).toEqual(tolerations);
});
