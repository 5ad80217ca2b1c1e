import { describe, expect, it } from 'vitest';
import { countActiveLeases } from '../../api/app.ts';
import { bodyOf, COOLDOWN_SECONDS, DEFAULT_TTL, type LeaseApiUnderTest, leaseApi } from './lease-api.ts';
import { aProxy } from './proxies.ts';

const nameOfLease = async (api: LeaseApiUnderTest, body: object = {}): Promise<string> =>
  (await bodyOf(api.post('/v1/leases', body))).proxy.name;

describe('POST /v1/leases', () => {
  it('answers 201 with a lease on a matching proxy', async () => {
    const api = leaseApi([
      aProxy('us', { attributes: { country: 'us' } }),
      aProxy('de', { attributes: { country: 'de', tier: 'a' }, latencyMillis: 12 }),
    ]);
    const response = await api.post('/v1/leases', { selector: { country: 'de' }, ttlSeconds: 60, target: 'shop' });
    expect(response.status).toBe(201);
    expect(await bodyOf(response)).toEqual({
      leaseID: expect.stringMatching(/^[\w-]{32}$/),
      proxy: {
        namespace: 'default',
        name: 'de',
        host: '192.0.2.1',
        port: 3128,
        url: 'http://192.0.2.1:3128',
        attributes: { country: 'de', tier: 'a' },
        latencyMillis: 12,
        healthy: true,
        activeLeases: 1,
      },
      expiresAt: '2026-01-01T00:01:00.000Z',
      ttlSeconds: 60,
    });
  });

  it('takes any proxy for the default time when nothing else is asked for', async () => {
    const api = leaseApi([aProxy('a')]);
    expect(await bodyOf(api.post('/v1/leases', {}))).toMatchObject({ ttlSeconds: DEFAULT_TTL });
  });

  it('prefers fewest active leases, then latency, then namespace and name', async () => {
    const limit = { maxConcurrent: 2 };
    const api = leaseApi([
      aProxy('unknown', limit),
      aProxy('slow', { ...limit, latencyMillis: 90 }),
      aProxy('z', { ...limit, latencyMillis: 10 }),
      aProxy('b', { ...limit, latencyMillis: 10 }),
      aProxy('a', { ...limit, latencyMillis: 10, namespace: 'zoo', uid: 'other' }),
    ]);
    const order: string[] = [];
    for (let i = 0; i < 6; i++) order.push(await nameOfLease(api));
    expect(order).toEqual(['b', 'z', 'a', 'slow', 'unknown', 'b']);
  });

  it('counts in its 409 what is the matter with each matching proxy', async () => {
    const attributes = { pool: 'x' };
    const api = leaseApi([
      aProxy('full', { attributes }),
      aProxy('banned', { attributes, latencyMillis: 1 }),
      aProxy('off', { attributes, maxConcurrent: 0 }),
      aProxy('sick', { attributes, healthy: false }),
      aProxy('addressless', { attributes, ip: null }),
      aProxy('cordoned', { attributes, cordoned: true }),
      aProxy('leaving', { attributes, deleting: true }),
      aProxy('other', { attributes: { pool: 'y' } }),
    ]);
    const ask = { selector: attributes, target: 'shop', ttlSeconds: 100 };
    const banned = await bodyOf(api.post('/v1/leases', ask));
    await api.post(`/v1/leases/${banned.leaseID}/report`, { result: 'banned' });
    await api.post('/v1/leases', ask);
    const response = await api.post('/v1/leases', ask);
    expect(response.status).toBe(409);
    expect(response.headers.get('retry-after')).toBe('100');
    expect(await bodyOf(response)).toEqual({
      error: 'no_match',
      message: '5 matching (2 more cordoned or being deleted), none free and healthy right now; see Retry-After',
      considered: 5,
      atCapacity: 2,
      inCooldown: 1,
      unhealthy: 2,
    });
    expect(api.outcomes).toEqual(['granted', 'reported_banned', 'granted', 'no_match']);
  });

  const waits = [
    { when: 'nothing matches', proxies: [], retryAfter: null },
    { when: 'all limits are 0', proxies: [aProxy('a', { maxConcurrent: 0 })], retryAfter: null },
    { when: 'all are cordoned', proxies: [aProxy('a', { cordoned: true })], retryAfter: null },
    { when: 'a probe may find one healthy', proxies: [aProxy('a', { healthy: false })], retryAfter: '30' },
  ];
  it.each(waits)('says Retry-After: $retryAfter when $when', async ({ proxies, retryAfter }) => {
    const response = await leaseApi(proxies).post('/v1/leases');
    expect(response.status).toBe(409);
    expect(response.headers.get('retry-after')).toBe(retryAfter);
  });

  it('goes by what the Proxies are like now', async () => {
    const api = leaseApi([aProxy('a', { maxConcurrent: 9 })]);
    expect(await nameOfLease(api)).toBe('a');
    api.view.put(aProxy('a', { maxConcurrent: 9, healthy: false }), aProxy('b'));
    expect(await nameOfLease(api)).toBe('b');
    api.view.remove('uid-b');
    expect((await api.post('/v1/leases')).status).toBe(409);
  });

  it("carries an External proxy's credentials in the url, percent-encoded, but not in the list or the log", async () => {
    const api = leaseApi([aProxy('ext', { externalHost: '2001:db8::7' })]);
    const url = 'http://us%20er:p%40ss%2Fw%3Ard@[2001:db8::7]:3128';
    const lease = await bodyOf(api.post('/v1/leases'));
    expect(lease.proxy.url).toBe(url);
    expect((await bodyOf(api.post(`/v1/leases/${lease.leaseID}/renew`))).proxy.url).toBe(url);
    expect((await bodyOf(api.get('/v1/proxies'))).proxies[0].url).toBe('http://[2001:db8::7]:3128');
    expect(JSON.stringify(api.logged)).not.toContain('p%40ss');
  });
});

describe('POST /v1/leases/{id}/renew', () => {
  const stillRenewable = [
    { now: 'unhealthy', traits: { healthy: false } },
    { now: 'cordoned', traits: { cordoned: true } },
    { now: 'limited to 0', traits: { maxConcurrent: 0 } },
  ];
  it.each(stillRenewable)('keeps the same proxy although it is $now', async ({ traits }) => {
    const api = leaseApi([aProxy('a'), aProxy('b')]);
    const { leaseID } = await bodyOf(api.post('/v1/leases'));
    api.view.put(aProxy('a', traits));
    api.pass(10);
    const response = await api.post(`/v1/leases/${leaseID}/renew`, { ttlSeconds: 60 });
    expect(response.status).toBe(200);
    expect(await bodyOf(response)).toMatchObject({
      leaseID,
      proxy: { name: 'a' },
      ttlSeconds: 60,
      expiresAt: '2026-01-01T00:01:10.000Z',
    });
  });

  const gone: [string, (api: LeaseApiUnderTest, id: string) => unknown][] = [
    ['it has expired', (api) => api.pass(DEFAULT_TTL)],
    ['it was released', (api, id) => api.request(`/v1/leases/${id}`, { method: 'DELETE' })],
    ['its proxy is gone', (api) => api.view.remove('uid-a')],
    ['its proxy is being deleted', (api) => api.view.put(aProxy('a', { deleting: true }))],
    ['its proxy is being replaced', (api) => api.view.put(aProxy('a', { ip: null }))],
    [
      'its proxy was made anew under the same name',
      (api) => {
        api.view.remove('uid-a');
        api.view.put(aProxy('a', { uid: 'uid-of-the-new-one' }));
      },
    ],
  ];
  it.each(gone)('answers 410 for good once %s', async (_, happens) => {
    const api = leaseApi([aProxy('a')]);
    const { leaseID } = await bodyOf(api.post('/v1/leases'));
    await happens(api, leaseID);
    const response = await api.post(`/v1/leases/${leaseID}/renew`);
    expect(response.status).toBe(410);
    expect(await bodyOf(response)).toMatchObject({ error: 'lease_gone' });
    api.view.put(aProxy('a'));
    expect((await api.post(`/v1/leases/${leaseID}/renew`)).status).toBe(410);
    expect(await countActiveLeases(api.view, api.store)).toBe(0);
  });
});

describe('DELETE /v1/leases/{id}', () => {
  it('answers 204 always, and frees the proxy', async () => {
    const api = leaseApi([aProxy('a')]);
    const { leaseID } = await bodyOf(api.post('/v1/leases'));
    for (const id of [leaseID, leaseID, 'never-heard-of']) {
      expect((await api.request(`/v1/leases/${id}`, { method: 'DELETE' })).status).toBe(204);
    }
    expect(await nameOfLease(api)).toBe('a');
  });
});

describe('POST /v1/leases/{id}/report', () => {
  it('keeps a limited proxy from the target until the window is over', async () => {
    const api = leaseApi([aProxy('a', { maxConcurrent: 9, latencyMillis: 1 }), aProxy('b', { maxConcurrent: 9 })]);
    const { leaseID } = await bodyOf(api.post('/v1/leases', { target: 'shop' }));
    expect((await api.post(`/v1/leases/${leaseID}/report`, { result: 'rate_limited' })).status).toBe(204);
    await api.request(`/v1/leases/${leaseID}`, { method: 'DELETE' });
    expect(await nameOfLease(api, { target: 'shop' })).toBe('b');
    expect(await nameOfLease(api, { target: 'bank' })).toBe('a');
    api.pass(COOLDOWN_SECONDS);
    expect(await nameOfLease(api, { target: 'shop' })).toBe('a');
  });

  it('is taken for a window after the lease expired, then 404 unknown_lease', async () => {
    const api = leaseApi([aProxy('a')]);
    const { leaseID } = await bodyOf(api.post('/v1/leases'));
    api.pass(DEFAULT_TTL + COOLDOWN_SECONDS - 1);
    expect((await api.post(`/v1/leases/${leaseID}/report`, { result: 'ok' })).status).toBe(204);
    api.pass(1);
    const response = await api.post(`/v1/leases/${leaseID}/report`, { result: 'ok' });
    expect(response.status).toBe(404);
    expect(await bodyOf(response)).toMatchObject({ error: 'unknown_lease' });
  });
});
