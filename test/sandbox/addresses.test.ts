import { expect, it } from 'vitest';
import { chooseProxyRange, parseListening } from '../../deploy/sandbox/addresses.ts';

const first = { dir: '/home/me/checkout/.sandbox', isDefault: true };
const target = (host: string) => ({ host });

it('the first sandbox of a machine has its proxies in 127.77.0.0/16', () => {
  expect(chooseProxyRange(first, target('127.80.0.1'), ['127.0.0.1', '0.0.0.0'])).toBe('127.77.0.0/16');
});

it.each([
  ['another sandbox has the first probe target', first, '127.80.0.2', []],
  ['something listens in that range', first, '127.80.0.1', ['127.77.3.4']],
  ['the state folder is another', { ...first, isDefault: false }, '127.80.0.1', []],
])('it follows from the state folder where %s', (_, paths, host, listening) => {
  const range = chooseProxyRange(paths, target(host), listening);
  expect(range).toMatch(/^127\.\d+\.0\.0\/16$/);
  expect(range).not.toMatch(/^127\.(77|80)\./);
  expect(chooseProxyRange(paths, target(host), listening)).toBe(range);
});

it('a range in which something listens is passed over', () => {
  const range = chooseProxyRange(first, target('127.80.0.2'), []);
  const busy = range.replace('.0.0/16', '.9.9');
  expect(chooseProxyRange(first, target('127.80.0.2'), [busy])).not.toBe(range);
});

it('only listening sockets of /proc/net/tcp count', () => {
  const table = [
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
    '   0: 01004D7F:0C38 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0',
    '   1: 0100007F:1C41 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 20 4 30 10 -1',
  ];
  expect(parseListening(`${table.join('\n')}\n`)).toEqual(['127.77.0.1']);
});
