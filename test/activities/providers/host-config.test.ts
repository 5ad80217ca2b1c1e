import { expect, test } from 'vitest';
import { hostConfig } from '../../../activities/providers/host/index.ts';
import { hostWorld } from './host-world.ts';

test.each([
  [{ stateDir: 'relative' }, 'stateDir', 'absolute path'],
  [{ addresses: '127.77.0.1/16' }, 'addresses', '127.77.0.0/16'],
  [{ addresses: ['fd00::/64'] }, 'addresses', 'IPv4'],
  [{ addresses: [] }, 'addresses', ''],
  [{ clients: undefined }, 'clients', ''],
  [{ clients: ['everyone'] }, 'clients', '"everyone" is neither an IP address nor a network'],
  [{ allowedNetworks: ['10.0.0.0/33'] }, 'allowedNetworks', '0 to 32'],
  [{ connectPorts: [0] }, 'connectPorts', ''],
  [{ name: 'Local' }, 'name', 'lower-case'],
  [{ colour: 'red' }, '', 'colour'],
])('a configuration with %j is refused', (mistake, path, message) => {
  const base = {
    name: 'local',
    type: 'host',
    stateDir: '/var/lib/x',
    addresses: '127.77.0.0/16',
    clients: ['10.0.0.0/8'],
  };
  expect(hostConfig.safeParse(base).success).toBe(true);
  const { error } = hostConfig.safeParse({ ...base, ...mistake });
  expect(error?.issues[0]?.path[0] ?? '').toBe(path);
  expect(JSON.stringify(error?.issues).replaceAll('\\"', '"')).toContain(message);
});

test('without Squid the provider does not start, and says what to install', async () => {
  const host = await hostWorld();
  await expect(host.start({ squid: '/nowhere/squid' })).rejects.toThrow(/\/nowhere\/squid .* apt-get install squid/);
});
