import { describe, expect, it } from 'vitest';
import { parseProviders } from '../../activities/providers/registry.ts';

const HOST = '{name: local, type: host, stateDir: /var/lib/px, addresses: 127.77.0.0/16, clients: [127.0.0.0/8]}';

describe('parseProviders', () => {
  it('reads a list at the top level or under providers, and two instances of one type', () => {
    const [first] = parseProviders(`- ${HOST}`, 'p.yaml');
    expect(first).toMatchObject({
      name: 'local',
      type: 'host',
      connectPorts: [443],
      httpPorts: [80],
      allowedNetworks: [],
    });
    const both = parseProviders(`providers:\n  - ${HOST}\n  - ${HOST.replace('local', 'other')}`, 'p.yaml');
    expect(both.map(({ name }) => name)).toEqual(['local', 'other']);
    expect(parseProviders('[]', 'p.yaml')).toEqual([]);
  });

  it.each([
    ['', 'expected a list of providers'],
    ['providers: nonsense', 'expected a list of providers'],
    ['- {', 'line 1'],
    ['- {name: a, type: cloud9}', 'providers[0] ("a").type: unknown type "cloud9"; known types: gcp, host, kubernetes'],
    ['- {name: a}', 'providers[0] ("a").type: missing'],
    ['- nonsense', 'providers[0]'],
    [`- ${HOST.replace('}', ', nope: 1}')}`, 'nope'],
    [`- ${HOST.replace('127.77.0.0/16', '127.77.0.0/99')}`, 'providers[0] ("local").addresses'],
    [`- ${HOST.replace(', clients: [127.0.0.0/8]', '')}`, 'providers[0] ("local").clients: is missing'],
    [`- ${HOST}\n- ${HOST}`, 'the name "local" is used more than once'],
  ])('refuses %j', (text, message) => {
    expect(() => parseProviders(text, 'p.yaml')).toThrow(message);
    expect(() => parseProviders(text, 'p.yaml')).toThrow('p.yaml is not a valid providers file');
  });

  it('names all mistakes together, by path', () => {
    const text = '- {name: a, type: host}\n- {name: b, type: nope}';
    const error = (() => {
      try {
        return parseProviders(text, 'p.yaml');
      } catch (thrown) {
        return thrown as Error;
      }
    })();
    const lines = (error as Error).message.split('\n').slice(1);
    expect(lines.filter((line) => line.startsWith('  - providers[0] ("a")')).length).toBeGreaterThanOrEqual(3);
    expect(lines.at(-1)).toContain('providers[1] ("b").type: unknown type "nope"');
  });
});
