import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { hostStateFolders } from '../../deploy/sandbox/providers-file.ts';
import { fittingSamples } from '../../deploy/sandbox/sample.ts';

const usual = { PROBE_TARGET_HTTPS: 'https://127.80.0.1:18443/', POD_PROBE_TARGET: 'http://10.77.0.1:18080/' };
const local = '- {name: local, type: host, stateDir: /srv/squids, addresses: 127.77.0.0/16, clients: [127.0.0.0/8]}\n';
const pods = '- {name: pods, type: kubernetes, namespace: default, clients: [10.77.0.1]}\n';

let dir: string;
let file: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'sandbox-test-'));
  file = join(dir, 'providers.yaml');
});
afterEach(() => rmSync(dir, { recursive: true }));

it.each([
  ['both providers', local + pods, ['deploy/samples/local.yaml', 'deploy/samples/pods.yaml']],
  ['no provider for pods', local, ['deploy/samples/local.yaml']],
  ['providers of other names only', pods.replace('pods', 'fra'), []],
  ['a mistake', 'providers: nonsense', []],
])('of a providers file with %s, the samples that it has a provider for are named', (_, providers, samples) => {
  writeFileSync(file, providers);
  expect(fittingSamples({ dir }, usual, file)).toEqual(samples);
});

it('without a node there is no sample for pods', () => {
  writeFileSync(file, local + pods);
  expect(fittingSamples({ dir }, { PROBE_TARGET_HTTPS: usual.PROBE_TARGET_HTTPS }, file)).toHaveLength(1);
});

it('a sample names the probe target of this sandbox', () => {
  writeFileSync(file, pods);
  const target = 'http://10.200.0.1:18081/';
  const [copy = ''] = fittingSamples({ dir }, { ...usual, POD_PROBE_TARGET: target }, file);
  expect(readFileSync(copy, 'utf8')).toContain(`url: ${target}`);
  expect(readFileSync(copy, 'utf8')).not.toContain(usual.POD_PROBE_TARGET);
});

it.each([
  ['at the top level', local],
  ['under `providers`', `providers:\n${local}`],
])('the Squids of a providers file are found with its list %s', (_, providers) => {
  writeFileSync(file, providers);
  expect(hostStateFolders(file)).toEqual(['/srv/squids']);
});
