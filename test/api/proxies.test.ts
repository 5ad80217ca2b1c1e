import { describe, expect, it } from 'vitest';
import { bodyOf, leaseApi } from './lease-api.ts';
import { aProxy } from './proxies.ts';

const fleet = () =>
  leaseApi([
    aProxy('b', { attributes: { country: 'de', tier: 'a' }, maxConcurrent: 2 }),
    aProxy('a', { attributes: { country: 'de' }, healthy: false }),
    aProxy('c', { attributes: { country: 'us' }, ip: null }),
    aProxy('z', { namespace: 'alpha', cordoned: true }),
  ]);

describe('GET /v1/proxies', () => {
  const queries: [string, string[]][] = [
    ['', ['z', 'a', 'b', 'c']],
    ['?attr.country=de', ['a', 'b']],
    ['?attr.country=de&attr.tier=a', ['b']],
    ['?healthy=true', ['z', 'b']],
    ['?healthy=false&attr.country=de', ['a']],
    ['?attr.country=fr', []],
    ['?attr.toString=x', []],
  ];
  it.each(queries)('%s lists %j', async (query, names) => {
    const response = await fleet().get(`/v1/proxies${query}`);
    expect(response.status).toBe(200);
    const { proxies, count } = await bodyOf(response);
    expect(proxies.map(({ name }: { name: string }) => name)).toEqual(names);
    expect(count).toBe(names.length);
  });

  it('shows active leases, and null for what a proxy does not have yet', async () => {
    const api = fleet();
    await api.post('/v1/leases', { selector: { tier: 'a' } });
    await api.post('/v1/leases', { selector: { tier: 'a' } });
    const { proxies } = await bodyOf(api.get('/v1/proxies'));
    expect(proxies).toMatchObject([
      { name: 'z', activeLeases: 0 },
      { name: 'a', healthy: false },
      { name: 'b', healthy: true, activeLeases: 2 },
      { name: 'c', host: null, port: null, url: null, latencyMillis: null, healthy: false },
    ]);
  });

  it.each([
    ['?country=de', 'country is not a known parameter'],
    ['?attr.=de', 'attr. is not a known parameter'],
    ['?healthy=yes', 'healthy must be true or false'],
    ['?healthy=true&healthy=false', 'healthy must be true or false, and given once'],
    ['?attr.country=de&attr.country=us', 'attr.country must be given once'],
  ])('refuses %s', async (query, message) => {
    const response = await fleet().get(`/v1/proxies${query}`);
    expect(response.status).toBe(400);
    expect(await bodyOf(response)).toMatchObject({
      error: 'invalid_request',
      message: expect.stringContaining(message),
    });
  });
});
