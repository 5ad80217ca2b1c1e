import { CoreV1Api, CustomObjectsApi, KubeConfig, PatchStrategy, setHeaderOptions } from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { PROVIDER_HEALTHS } from '../../model/provider-health.ts';
import { GROUP, PROXIES, type Proxy, VERSION } from '../../model/proxy.ts';

/**
 * What the API server itself makes of our resources. `kubeconfig` is the path of a kubeconfig whose API server has
 * deploy/crds applied. Most cases are dry runs, so that nothing is there for a watcher to see.
 */
const kubeConfig = new KubeConfig();
kubeConfig.loadFromFile(inject('kubeconfig'));
const api = kubeConfig.makeApiClient(CustomObjectsApi);
const core = kubeConfig.makeApiClient(CoreV1Api);

const MERGE = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);
const AS_TABLE = setHeaderOptions('Accept', 'application/json;as=Table;v=v1;g=meta.k8s.io');
const PEM = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';

type Json = Record<string, unknown>;

let namespace: string;
const proxies = () => ({ group: GROUP, version: VERSION, namespace, plural: PROXIES });

const create = (spec: unknown, { dryRun = true, name = 'subject' } = {}): Promise<Proxy> =>
  api.createNamespacedCustomObject({
    ...proxies(),
    body: { apiVersion: `${GROUP}/${VERSION}`, kind: 'Proxy', metadata: { name }, spec },
    ...(dryRun ? { dryRun: 'All' } : {}),
  });

const patch = (name: string, body: Json, { dryRun = true } = {}): Promise<Proxy> =>
  api.patchNamespacedCustomObject({ ...proxies(), name, body, ...(dryRun ? { dryRun: 'All' } : {}) }, MERGE);

/** What a person reads: the `message` of the API server's 422, or undefined when the object was accepted. */
async function refusal(attempt: Promise<unknown>): Promise<string | undefined> {
  try {
    await attempt;
    return undefined;
  } catch (error) {
    const { code, body } = error as { code?: number; body?: string };
    if (code !== 422 || body === undefined) throw error;
    return (JSON.parse(body) as { message: string }).message;
  }
}

beforeAll(async () => {
  const made = await core.createNamespace({ body: { metadata: { generateName: 'crds-' } } });
  namespace = made.metadata?.name ?? '';
});

afterAll(async () => {
  await api.deleteCollectionNamespacedCustomObject(proxies());
  await core.deleteNamespace({ name: namespace });
});

const managed = (more: Json = {}): Json => ({ provider: 'local', ...more });
const external = (more: Json = {}): Json => ({ mode: 'External', endpoint: { host: '192.0.2.1' }, ...more });
const endpoint = (more: Json): Json => external({ endpoint: { host: '192.0.2.1', ...more } });

const refused: [why: string, spec: unknown, message: string][] = [
  ['no spec', undefined, 'spec: Required value'],
  ['an unknown mode', managed({ mode: 'Borrowed' }), 'supported values: "Managed", "External"'],
  ['Managed without a provider', {}, 'spec.provider is required when spec.mode is Managed'],
  ['a provider that is no name', { provider: 'Local_1' }, 'spec.provider is the name of a configured provider'],
  ['a provider name that is too long', { provider: 'p'.repeat(64) }, 'may not be more than 63'],
  [
    'External with a provider',
    external({ provider: 'local' }),
    'spec.provider is forbidden when spec.mode is External',
  ],
  ['External without an endpoint', { mode: 'External' }, 'spec.endpoint is required when spec.mode is External'],
  ['External without a host', external({ endpoint: {} }), 'spec.endpoint.host: Required value'],
  ['External with placement', external({ placement: {} }), 'spec.placement is forbidden when spec.mode is External'],
  [
    'External with cloud-init',
    external({ cloudInit: { inline: 'x' } }),
    'spec.cloudInit is forbidden when spec.mode is',
  ],
  [
    'Managed with an endpoint',
    managed({ endpoint: { host: '192.0.2.1' } }),
    'spec.endpoint is forbidden when spec.mode',
  ],
  ['an endpoint with a scheme', endpoint({ host: 'http://a.example' }), 'without scheme, port or path'],
  ['an endpoint with a port in its host', endpoint({ host: 'a.example:80' }), 'without scheme, port or path'],
  ['an endpoint with half an address', endpoint({ host: '192.0.2' }), 'an IP address or a DNS name'],
  ['an endpoint port of 0', endpoint({ port: 0 }), 'spec.endpoint.port in body should be greater than or equal to 1'],
  ['an endpoint port of 65536', endpoint({ port: 65536 }), 'should be less than or equal to 65535'],
  [
    'endpoint credentials without a name',
    endpoint({ credentialsSecretRef: {} }),
    'credentialsSecretRef.name: Required',
  ],
  ['cloud-init that is empty', managed({ cloudInit: {} }), 'exactly one of inline and secretRef'],
  [
    'cloud-init from two places',
    managed({ cloudInit: { inline: 'x', secretRef: { name: 'n', key: 'k' } } }),
    'exactly one of inline and secretRef',
  ],
  ['a secretRef without a key', managed({ cloudInit: { secretRef: { name: 'n' } } }), 'secretRef.key: Required value'],
  ['cloud-init without end', managed({ cloudInit: { inline: 'x'.repeat(65537) } }), 'may not be more than 65536'],
  ['a disk of 0 GB', managed({ placement: { diskGB: 0 } }), 'spec.placement.diskGB'],
  ['a zone to fall back on twice', managed({ placement: { zones: ['a', 'a'] } }), 'Duplicate value'],
  ['eight zones to fall back on', managed({ placement: { zones: [...'abcdefgh'] } }), 'at most 7 items'],
  ['a placement label with a long key', managed({ placement: { labels: { ['k'.repeat(64)]: 'v' } } }), 'at most 63'],
  ['port 0', managed({ port: 0 }), 'spec.port in body should be greater than or equal to 1'],
  ['port 65536', managed({ port: 65536 }), 'spec.port in body should be less than or equal to 65535'],
  ['a port that is text', managed({ port: '3128' }), 'spec.port in body must be of type integer'],
  ['an attribute that is a number', managed({ attributes: { tier: 1 } }), 'must be of type string'],
  ['an attribute with a long key', managed({ attributes: { ['k'.repeat(64)]: 'v' } }), '1 to 63 characters'],
  [
    'attributes without end',
    managed({ attributes: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, 'v'])) }),
    'must have at most 64 items',
  ],
  ['a negative lease limit', managed({ lease: { maxConcurrent: -1 } }), 'should be greater than or equal to 0'],
  [
    'a probe URL without scheme',
    managed({ health: { url: 'example.org/' } }),
    'must be a full http:// or https:// URL',
  ],
  ['a probe URL of another scheme', managed({ health: { url: 'ftp://example.org/' } }), 'must be a full http:// or'],
  ['a probe URL without host', managed({ health: { url: 'http:///path' } }), 'must be a full http:// or https:// URL'],
  ['status 99', managed({ health: { expectedStatus: 99 } }), 'spec.health.expectedStatus'],
  ['status 600', managed({ health: { expectedStatus: 600 } }), 'spec.health.expectedStatus'],
  ['an interval of 0', managed({ health: { intervalSeconds: 0 } }), 'spec.health.intervalSeconds'],
  ['an interval over an hour', managed({ health: { intervalSeconds: 3601 } }), 'spec.health.intervalSeconds'],
  ['a timeout of 0', managed({ health: { timeoutSeconds: 0 } }), 'spec.health.timeoutSeconds'],
  [
    'a timeout over 300',
    managed({ health: { intervalSeconds: 600, timeoutSeconds: 301 } }),
    'should be less than or equal to 300',
  ],
  [
    'a timeout over the interval',
    managed({ health: { intervalSeconds: 20, timeoutSeconds: 21 } }),
    'must be at most intervalSeconds',
  ],
  [
    'an interval under the default timeout',
    managed({ health: { intervalSeconds: 5 } }),
    'spec.health.timeoutSeconds (10 when not given) must be at most intervalSeconds',
  ],
  ['a threshold of 0', managed({ health: { successThreshold: 0 } }), 'spec.health.successThreshold'],
  ['a threshold of 11', managed({ health: { failureThreshold: 11 } }), 'spec.health.failureThreshold'],
  ['a caBundle that is no PEM', managed({ health: { caBundle: 'MIIB' } }), 'spec.health.caBundle must be PEM text'],
];

describe('a Proxy is refused, with a message that a person understands', () => {
  test.each(refused)('%s', async (_why, spec, message) => {
    expect(await refusal(create(spec))).toContain(message);
  });
});

const accepted: [what: string, spec: Json][] = [
  ['Managed with a provider alone', managed()],
  [
    'every field of Managed',
    managed({
      mode: 'Managed',
      placement: {
        zone: 'z',
        machineType: 'm',
        image: 'i',
        network: 'n',
        subnetwork: 's',
        diskGB: 10,
        labels: { a: '' },
      },
      cloudInit: { secretRef: { name: 'n', key: 'k' } },
      port: 65535,
      attributes: { country: 'de', 'example.org/tier': 'any text at all, ü too' },
      lease: { maxConcurrent: 0 },
      cordoned: true,
      health: {
        url: 'https://example.org:8443/probe?x=1',
        expectedStatus: 204,
        intervalSeconds: 3600,
        timeoutSeconds: 300,
        successThreshold: 10,
        failureThreshold: 10,
        caBundle: PEM,
      },
    }),
  ],
  ['inline cloud-init', managed({ cloudInit: { inline: '#cloud-config' } })],
  ['External by IPv4 address', external()],
  ['External by IPv6 address', endpoint({ host: '2001:db8::1' })],
  [
    'External by name, with port and credentials',
    endpoint({
      host: 'proxy-1.example.org',
      port: 8080,
      credentialsSecretRef: { name: 'n' },
    }),
  ],
  ['a timeout equal to the interval', managed({ health: { intervalSeconds: 1, timeoutSeconds: 1 } })],
  ['a probe URL with an IPv6 host', managed({ health: { url: 'http://[2001:db8::1]:8080/' } })],
];

describe('a Proxy is accepted', () => {
  test.each(accepted)('%s', async (_what, spec) => {
    expect(await refusal(create(spec))).toBeUndefined();
  });
});

describe('what is stored is what is in force', () => {
  const DEFAULTS = {
    mode: 'Managed',
    port: 3128,
    lease: { maxConcurrent: 1 },
    cordoned: false,
    health: { expectedStatus: 200, intervalSeconds: 30, timeoutSeconds: 10, successThreshold: 1, failureThreshold: 3 },
  };

  test('every default is filled in', async () => {
    expect((await create(managed())).spec).toEqual({ ...DEFAULTS, provider: 'local' });
  });

  test('a partial lease or health gets the rest', async () => {
    const { spec } = await create(managed({ lease: {}, health: { expectedStatus: 204 } }));
    expect(spec.lease).toEqual(DEFAULTS.lease);
    expect(spec.health).toEqual({ ...DEFAULTS.health, expectedStatus: 204 });
  });
});

describe('an edit', () => {
  beforeAll(async () => {
    await create(managed(), { dryRun: false, name: 'managed' });
    await create(external(), { dryRun: false, name: 'external' });
  });

  test.each<[string, string, Json, string]>([
    ['of mode', 'managed', { mode: 'External' }, 'spec.mode is immutable'],
    ['of mode, back', 'external', { mode: 'Managed', provider: 'local', endpoint: null }, 'spec.mode is immutable'],
    [
      'of provider',
      'managed',
      { provider: 'other' },
      "spec.provider is immutable: an instance can't move between providers; create another Proxy",
    ],
    ['that takes the provider away', 'managed', { provider: null }, 'spec.provider is required'],
  ])('%s is refused', async (_what, name, spec, message) => {
    expect(await refusal(patch(name, { spec }))).toContain(message);
  });

  test.each<[string, string, Json]>([
    ['of port', 'managed', { port: 3129 }],
    ['of placement', 'managed', { placement: { zone: 'b' } }],
    ['of attributes', 'managed', { attributes: { country: 'fr' } }],
    ['of the endpoint', 'external', { endpoint: { host: '192.0.2.2' } }],
  ])('%s is a new generation', async (_what, name, spec) => {
    expect((await patch(name, { spec })).metadata.generation).toBe(2);
  });
});

const CONDITION = { status: 'True', message: 'm', observedGeneration: 1, lastTransitionTime: '2026-01-01T00:00:00Z' };

interface Table {
  columnDefinitions: { name: string; priority: number }[];
  rows: { cells: unknown[] }[];
}

/** The cells of the first row under the names of their columns; wide columns in parentheses. */
function firstRow({ columnDefinitions, rows }: Table): Json {
  return Object.fromEntries(
    columnDefinitions.map(({ name, priority }, at) => [priority > 0 ? `(${name})` : name, rows[0]?.cells[at]]),
  );
}

describe('the status of a Proxy', () => {
  const STATUS = {
    phase: 'Ready',
    ip: '192.0.2.9',
    port: 3128,
    providerID: 'host://local/proxy-x',
    incarnation: 1,
    observedGeneration: 1,
    latencyMillis: 12,
    lastHealthCheckTime: '2026-01-01T00:00:00Z',
    conditions: [
      { type: 'Provisioned', reason: 'Created', ...CONDITION },
      { type: 'Healthy', reason: 'ProbeSucceeded', ...CONDITION },
    ],
  };
  const name = 'with-status';

  beforeAll(async () => {
    await create(managed(), { dryRun: false, name });
    await api.patchNamespacedCustomObjectStatus(
      { ...proxies(), name, body: { status: STATUS, spec: { cordoned: true } } },
      MERGE,
    );
  });

  test('is kept whole, and writing it touches neither spec nor generation', async () => {
    const proxy: Proxy = await api.getNamespacedCustomObject({ ...proxies(), name });
    expect(proxy.status).toEqual(STATUS);
    expect(proxy.spec.cordoned).toBe(false);
    expect(proxy.metadata.generation).toBe(1);
  });

  test('is not touched by a write of the object', async () => {
    expect((await patch(name, { status: { phase: 'Failed' } })).status?.phase).toBe('Ready');
  });

  test('is printed, the rest with -o wide', async () => {
    const table: Table = await api.listNamespacedCustomObject(
      { ...proxies(), fieldSelector: `metadata.name=${name}` },
      AS_TABLE,
    );
    expect(firstRow(table)).toEqual({
      Name: name,
      Phase: 'Ready',
      Provider: 'local',
      IP: '192.0.2.9',
      Latency: 12,
      Age: expect.any(String),
      '(ProviderID)': 'host://local/proxy-x',
      '(Healthy)': 'ProbeSucceeded',
    });
  });
});

describe('a ProviderHealth', () => {
  const resource = { group: GROUP, version: VERSION, plural: PROVIDER_HEALTHS };
  const name = `crds-${process.pid}`;
  const STATUS = {
    instances: 3,
    orphans: 1,
    consecutiveFailures: 2,
    lastSuccessTime: '2026-01-01T00:00:00Z',
    lastCheckTime: '2026-01-02T00:00:00Z',
    conditions: [{ type: 'Available', reason: 'Available', ...CONDITION }],
  };

  afterAll(() => api.deleteClusterCustomObject({ ...resource, name }));

  test('holds what the sweep saw, and prints it', async () => {
    const body = { apiVersion: `${GROUP}/${VERSION}`, kind: 'ProviderHealth', metadata: { name } };
    await api.createClusterCustomObject({ ...resource, body });
    const written = await api.patchClusterCustomObjectStatus({ ...resource, name, body: { status: STATUS } }, MERGE);
    expect(written.status).toEqual(STATUS);

    const table: Table = await api.listClusterCustomObject(
      { ...resource, fieldSelector: `metadata.name=${name}` },
      AS_TABLE,
    );
    expect(firstRow(table)).toEqual({
      Name: name,
      Available: 'True',
      Reason: 'Available',
      Instances: 3,
      Orphans: 1,
      Failures: 2,
      'Last Success': expect.any(String),
      Age: expect.any(String),
    });
  });
});
