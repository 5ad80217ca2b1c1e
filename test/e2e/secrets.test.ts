import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { CLOUD_INIT_LABEL, CREDENTIALS_LABEL, HASH_ANNOTATION, type Proxy } from '../../model/proxy.ts';
import { REPLACE } from '../../model/workflow-names.ts';
import { inPhase, PROBED_OFTEN, provisionedReason, readyAt } from './fleet.ts';
import { metricsText } from './metrics.ts';
import { secretsIn, spellingsOf } from './spellings.ts';
import { sandboxOfThisFile } from './world.ts';

/** What no one may find; each is in use in some part of the story below. */
const SECRETS = {
  'cloud-init': 'FirstCloudInitMarker4711',
  'rotated cloud-init': 'SecondCloudInitMarker0815',
  'unlabelled cloud-init': 'UnlabelledMarker31415926',
  'cloud-init without the key': 'OtherKeyMarker2718281828',
  'cloud-init of a failed proxy': 'FailedProxyMarker1414213',
  username: 'UsernameMarker1732050807',
  password: 'PasswordMarker2236067977',
};
const LABELLED = { [CLOUD_INIT_LABEL]: 'true' };

// With the most talkative log there is.
const world = sandboxOfThisFile('secrets', { env: { LOG_LEVEL: 'debug' } });
const userData = (marker: string) => ({ 'user-data': `#cloud-config\nwrite_files: [{content: ${marker}}]\n` });
const fromSecret = (name: string, key = 'user-data') => ({ secretRef: { name, key } });
const managed = (spec: object) => ({ provider: 'local', health: PROBED_OFTEN, ...spec });

/** Creates, rotates, replaces, fails and deletes with all of the secrets. */
beforeAll(async () => {
  const { fleet, workflowOf } = world();
  await fleet.putSecret('rotated', userData(SECRETS['cloud-init']), LABELLED);
  await fleet.putSecret('unlabelled', userData(SECRETS['unlabelled cloud-init']));
  await fleet.putSecret('keyless', userData(SECRETS['cloud-init without the key']), LABELLED);
  await fleet.putSecret('failed', userData(SECRETS['cloud-init of a failed proxy']), LABELLED);
  const login = { username: SECRETS.username, password: SECRETS.password };
  await fleet.putSecret('login', login, { [CREDENTIALS_LABEL]: 'true' });

  const created = await fleet.create('rotation', managed({ cloudInit: fromSecret('rotated') }));
  const first = await fleet.until('rotation', readyAt(created));
  await fleet.putSecret('rotated', userData(SECRETS['rotated cloud-init']), LABELLED);
  await fleet.until('rotation', (proxy) => readyAt(first)(proxy) && proxy.status?.incarnation === 2);
  await workflowOf(first).executeUpdate(REPLACE);
  await fleet.until('rotation', (proxy) => readyAt(first)(proxy) && proxy.status?.incarnation === 3);

  await fleet.create('blind', managed({ cloudInit: fromSecret('unlabelled') }));
  await fleet.create('wrong-key', managed({ cloudInit: fromSecret('keyless', 'absent') }));
  await fleet.create('failing', { ...managed({ cloudInit: fromSecret('failed') }), provider: 'mars' });
  for (const name of ['blind', 'wrong-key'])
    await fleet.until(name, (proxy) => provisionedReason(proxy) === 'CloudInitError');
  await fleet.until('failing', inPhase('Failed'));

  const external = (port: number | undefined) => ({
    mode: 'External',
    endpoint: { host: first.status?.ip, port, credentialsSecretRef: { name: 'login' } },
    health: PROBED_OFTEN,
    attributes: { partner: 'yes' },
  });
  await fleet.until('partner', readyAt(await fleet.create('partner', external(first.status?.port))));
  await fleet.create('partner-down', external(1));
  await fleet.until('partner-down', inPhase('Unhealthy'));
});

test('the lease of an External proxy carries its credentials, and nothing else of the API does', async () => {
  const { leases, settings } = world();
  const answer = await leases.take({ selector: { partner: 'yes' } });
  expect(answer.body.proxy?.url).toContain(`http://${SECRETS.username}:${SECRETS.password}@`);
  const listed = await fetch(`${settings.LEASE_API}/v1/proxies`);
  const text = await listed.text();
  expect(text).toContain('"partner"');
  expect(secretsIn(text, SECRETS)).toEqual([]);
});

describe('no content of a Secret is found', () => {
  const names = ['rotation', 'blind', 'wrong-key', 'failing', 'partner', 'partner-down'];
  const seen = (): Proxy[] => names.flatMap((name) => world().fleet.watch.versions(name));

  beforeAll(async () => {
    const { fleet, workflowOf } = world();
    const rotation = fleet.watch.current('rotation');
    await Promise.all(names.map((name) => fleet.remove(name)));
    await Promise.all(names.map((name) => fleet.gone(name)));
    if (!rotation) throw new Error('rotation was not there');
    await vi.waitFor(async () => expect((await workflowOf(rotation).describe()).status.name).toBe('COMPLETED'));
  });

  test('in any workflow history, though the hashes made from them are', async () => {
    const texts = await world().histories.texts();
    expect(texts.size).toBeGreaterThan(names.length);
    const hashes = new Set(seen().flatMap(({ metadata }) => metadata.annotations?.[HASH_ANNOTATION] ?? []));
    expect(hashes.size).toBe(2);
    const all = [...texts.values()].join('');
    for (const hash of hashes) expect(all).toContain(hash);
    for (const [run, text] of texts) expect([run, secretsIn(text, SECRETS)]).toEqual([run, []]);
  });

  test('in the log of any part, in the metrics, or in any file but those of etcd', async () => {
    const { sandbox, settings } = world();
    const files = readdirSync(sandbox.dir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => !path.startsWith(join(sandbox.dir, 'etcd/')));
    expect(files).toContain(join(sandbox.dir, 'logs/orchestrator.log'));
    expect(files).toContain(join(sandbox.dir, 'temporal.db'));
    const found = files.map((path) => [path, secretsIn(readFileSync(path, 'latin1'), SECRETS)] as const);
    expect(found.filter(([, secrets]) => secrets.length > 0)).toEqual([]);
    expect(secretsIn(await metricsText(settings.METRICS), SECRETS)).toEqual([]);
  });

  test('in any Kubernetes Event or any version of a Proxy', async () => {
    const { items } = await world().fleet.core.listEventForAllNamespaces();
    const reasons = items
      .filter(({ involvedObject }) => names.includes(involvedObject.name ?? ''))
      .map((e) => e.reason);
    expect(reasons).toEqual(expect.arrayContaining(['Created', 'Replacing', 'CloudInitError', 'PermanentError']));
    expect(reasons).toEqual(expect.arrayContaining(['ProbeFailed', 'Deleting']));
    expect(secretsIn(JSON.stringify(items), SECRETS)).toEqual([]);
    expect(secretsIn(JSON.stringify(seen()), SECRETS)).toEqual([]);
  });

  test('by a search that would find it in base64 at any place', () => {
    for (const before of ['', 'a', 'ab', 'abc']) {
      const basic = Buffer.from(`${before}${SECRETS.username}:${SECRETS.password}`).toString('base64');
      expect(secretsIn(basic, SECRETS)).toEqual(['username', 'password']);
      expect(spellingsOf(SECRETS.username)).toHaveLength(8);
    }
  });
});
