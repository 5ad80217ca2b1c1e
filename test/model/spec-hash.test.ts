import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ManagedSpec } from '../../model/proxy.ts';
import { instanceName, specHash } from '../../model/spec-hash.ts';

const SPEC: ManagedSpec = {
  provider: 'gcp-eu',
  placement: { zone: 'europe-west1-b', labels: { a: '1', b: '2' } },
  port: 3128,
};

describe('instanceName', () => {
  it('is proxy- and the first 16 characters of lower-case base32 of SHA-256 of the UID', () => {
    const uid = '4debaf85-cde3-4d36-bf87-0824caf4313e';
    // 16 characters of base32 are 80 bits: the first 10 bytes of the digest, as five bits each.
    const bits = [...createHash('sha256').update(uid).digest().subarray(0, 10)]
      .map((byte) => byte.toString(2).padStart(8, '0'))
      .join('');
    const expected = bits.match(/.{5}/g)?.map((five) => 'abcdefghijklmnopqrstuvwxyz234567'[Number.parseInt(five, 2)]);
    expect(instanceName(uid)).toBe(`proxy-${expected?.join('')}`);
    expect(instanceName(uid)).toMatch(/^proxy-[a-z2-7]{16}$/);
  });
});

describe('specHash', () => {
  const hash = specHash(SPEC, 'a cloud-init');

  it.each<[string, ManagedSpec, string | undefined]>([
    ['placement', { ...SPEC, placement: { ...SPEC.placement, zone: 'europe-west1-c' } }, 'a cloud-init'],
    ['a placement label', { ...SPEC, placement: { ...SPEC.placement, labels: { a: '1', b: '3' } } }, 'a cloud-init'],
    ['port', { ...SPEC, port: 3129 }, 'a cloud-init'],
    ['the resolved cloud-init', SPEC, 'another cloud-init'],
    ['whether there is a cloud-init', SPEC, undefined],
  ])('changes with %s', (_, spec, cloudInit) => {
    expect(specHash(spec, cloudInit)).not.toBe(hash);
  });

  it.each<[string, ManagedSpec]>([
    ['attributes', { ...SPEC, attributes: { country: 'de' } }],
    ['lease limits', { ...SPEC, lease: { maxConcurrent: 9 } }],
    ['cordon', { ...SPEC, cordoned: true }],
    ['the zones to fall back on', { ...SPEC, placement: { ...SPEC.placement, zones: ['europe-west1-c'] } }],
    ['health', { ...SPEC, health: { intervalSeconds: 5 } }],
    ['where the cloud-init comes from', { ...SPEC, cloudInit: { secretRef: { name: 'a', key: 'b' } } }],
    [
      'the order of keys',
      { port: 3128, placement: { labels: { b: '2', a: '1' }, zone: 'europe-west1-b' }, provider: 'gcp-eu' },
    ],
  ])('stays the same whatever happens to %s', (_, spec) => {
    expect(specHash(spec, 'a cloud-init')).toBe(hash);
  });

  it('takes an absent port as the default', () => {
    const { port: _, ...spec } = SPEC;
    expect(specHash(spec, 'a cloud-init')).toBe(hash);
  });
});
