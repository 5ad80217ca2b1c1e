import { describe, expect, test } from 'vitest';
import { contains, format, parseNetwork, subtract } from '../../../activities/providers/cidr.ts';

test.each([
  ['10.0.0.0/8', '10.0.0.0/8'],
  ['192.168.1.7', '192.168.1.7'],
  ['192.168.1.7/32', '192.168.1.7'],
  ['0.0.0.0/0', '0.0.0.0/0'],
  ['FE80:0:0::/10', 'fe80::/10'],
  ['::1', '::1'],
  ['::/0', '::/0'],
  ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
])('%s is read as %s', (text, canonical) => {
  expect(format(parseNetwork(text))).toBe(canonical);
});

test.each([
  ['', 'neither an IP address nor a network'],
  ['localhost', 'neither an IP address nor a network'],
  ['10.0.0/8', 'neither an IP address nor a network'],
  ['fe80::1%eth0', 'neither an IP address nor a network'],
  ['10.0.0.0/33', '0 to 32'],
  ['10.0.0.0/', '0 to 32'],
  ['10.0.0.0/8/8', '0 to 32'],
  ['::/129', '0 to 128'],
  ['10.1.0.0/8', 'is 10.0.0.0/8 meant?'],
  ['::ffff:10.0.0.1', 'write it as IPv4'],
])('%j is refused', (text, message) => {
  expect(() => parseNetwork(text)).toThrow(message);
});

describe('what is left of a network without another', () => {
  test.each([
    ['10.0.0.0/8', '192.168.0.0/16', ['10.0.0.0/8']],
    ['10.0.0.0/8', '10.0.0.0/8', []],
    ['10.0.0.0/8', '0.0.0.0/0', []],
    ['10.0.0.0/30', '10.0.0.1', ['10.0.0.0', '10.0.0.2/31']],
    ['fc00::/7', 'fd00::/8', ['fc00::/8']],
    ['10.0.0.0/8', 'fd00::/8', ['10.0.0.0/8']],
  ])('%s without %s', (network, hole, left) => {
    expect(subtract(parseNetwork(network), parseNetwork(hole)).map(format)).toEqual(left);
  });

  test('covers the rest and nothing of the hole', () => {
    const hole = parseNetwork('127.80.0.0/24');
    const left = subtract(parseNetwork('127.0.0.0/8'), hole);
    const covered = (address: string) => left.some((part) => contains(part, parseNetwork(address)));
    expect(['127.0.0.1', '127.79.255.255', '127.80.1.0', '127.255.255.255'].every(covered)).toBe(true);
    expect(['127.80.0.0', '127.80.0.255', '126.255.255.255'].some(covered)).toBe(false);
  });
});
