import { describe, expect, it } from 'vitest';
import { LeaseStoreError } from '../../api/leases/store.ts';
import { bodyOf, leaseApi, MAX_TTL } from './lease-api.ts';
import { aProxy } from './proxies.ts';

const ttlMessage = `ttlSeconds must be a whole number of seconds from 1 to ${MAX_TTL}, the maximum`;

describe('a bad request is answered with what is wrong and how to put it right', () => {
  const leases: [body: unknown, error: string, message: string][] = [
    ['{"ttlSeconds": ', 'invalid_json', 'the body is not JSON'],
    ['', 'invalid_json', 'the body is not JSON'],
    ['[]', 'invalid_request', 'the body expected object, received array'],
    ['null', 'invalid_request', 'the body expected object, received null'],
    [{ ttlSeconds: 0 }, 'invalid_request', ttlMessage],
    [{ ttlSeconds: -1 }, 'invalid_request', ttlMessage],
    [{ ttlSeconds: 1.5 }, 'invalid_request', ttlMessage],
    [{ ttlSeconds: MAX_TTL + 1 }, 'invalid_request', ttlMessage],
    [{ ttlSeconds: 1e300 }, 'invalid_request', ttlMessage],
    [{ ttlSeconds: '60' }, 'invalid_request', ttlMessage],
    [{ ttlSeconds: null }, 'invalid_request', ttlMessage],
    [{ ttl: 60 }, 'invalid_request', '"ttl" in the body: no such field'],
    [{ selector: 'country=de' }, 'invalid_request', 'selector expected record, received string'],
    [{ selector: { country: 1 } }, 'invalid_request', 'selector.country expected string, received number'],
    [{ target: '' }, 'invalid_request', 'target expected string to have >=1 characters'],
    [{ target: 'x'.repeat(600) }, 'invalid_request', 'target expected string to have <=512 characters'],
    [{ owner: {} }, 'invalid_request', 'owner expected string, received object'],
  ];
  it.each(leases)('POST /v1/leases %j: 400 %s', async (body, error, message) => {
    const api = leaseApi([aProxy('a')]);
    const response = await api.post('/v1/leases', body);
    expect(response.status).toBe(400);
    expect(await bodyOf(response)).toEqual({ error, message: expect.stringContaining(message) });
    expect(api.outcomes).toEqual(['invalid']);
  });

  const reports: [body: unknown, error: string][] = [
    [{}, 'invalid_result'],
    [{ result: 'slow' }, 'invalid_result'],
    [{ result: 7 }, 'invalid_result'],
    [{ result: 'ok', note: 'x' }, 'invalid_request'],
    [{ result: 'ok', target: 5 }, 'invalid_request'],
  ];
  it.each(reports)('POST report %j: 400 %s', async (body, error) => {
    const response = await leaseApi([]).post('/v1/leases/any/report', body);
    expect(response.status).toBe(400);
    expect(await bodyOf(response)).toMatchObject({ error });
  });

  it('bodies over 64 KiB: 413, whether or not they say their length', async () => {
    const api = leaseApi([aProxy('a')]);
    const body = JSON.stringify({ owner: 'x'.repeat(65_536) });
    for (const headers of [{}, { 'content-length': String(body.length) }]) {
      const response = await api.request('/v1/leases', { method: 'POST', headers, body });
      expect(response.status).toBe(413);
      expect(await bodyOf(response)).toMatchObject({ error: 'body_too_large' });
    }
  });

  it('takes JSON under any content type, and an empty body for an empty object', async () => {
    const api = leaseApi([aProxy('a')]);
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const form = await api.request('/v1/leases', { method: 'POST', headers, body: '{"ttlSeconds": 7}' });
    expect(form.status).toBe(201);
    const { leaseID, ttlSeconds } = await bodyOf(form);
    expect(ttlSeconds).toBe(7);
    expect((await api.request(`/v1/leases/${leaseID}/renew`, { method: 'POST' })).status).toBe(200);
    const nonsense = await api.request('/v1/leases', { method: 'POST', headers, body: 'ttlSeconds=7' });
    expect(await bodyOf(nonsense)).toMatchObject({ error: 'invalid_json' });
  });

  it('unknown paths: 404; wrong methods: 405 with Allow', async () => {
    const api = leaseApi([]);
    expect(await bodyOf(api.get('/v2/leases'))).toMatchObject({ error: 'not_found' });
    const response = await api.request('/v1/leases', { method: 'PUT' });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('POST');
    expect(await bodyOf(response)).toEqual({
      error: 'method_not_allowed',
      message: '/v1/leases takes POST, not PUT',
    });
  });
});

describe('the bearer token', () => {
  const token = 's3cret!';
  it.each([undefined, 'Bearer', 'Bearer wrong', `Basic ${token}`, token, `Bearer ${token}x`])(
    'refuses Authorization: %s',
    async (authorization) => {
      const api = leaseApi([], { token });
      const response = await api.get('/v1/proxies', authorization === undefined ? {} : { authorization });
      expect(response.status).toBe(401);
      expect(response.headers.get('www-authenticate')).toBe('Bearer');
      expect(await bodyOf(response)).toMatchObject({ error: 'unauthorized' });
    },
  );

  it('lets its bearer in, and anybody to /healthz and /openapi.json', async () => {
    const api = leaseApi([], { token });
    expect((await api.get('/v1/proxies', { authorization: `Bearer ${token}` })).status).toBe(200);
    for (const path of ['/healthz', '/openapi.json']) expect((await api.get(path)).status).toBe(200);
  });

  it('is not in the log', async () => {
    const api = leaseApi([], { token });
    await api.get('/v1/proxies?attr.a=b', { authorization: `Bearer ${token}` });
    expect(api.logged).toEqual([
      expect.objectContaining({ method: 'GET', path: '/v1/proxies', status: 200, durationMillis: expect.any(Number) }),
    ]);
    expect(JSON.stringify(api.logged)).not.toContain(token);
  });
});

describe('faults on our side', () => {
  it('says 503 not_ready until the Proxies are known, while /healthz is 200', async () => {
    const api = leaseApi([aProxy('a')]);
    const { leaseID } = await bodyOf(api.post('/v1/leases'));
    api.view.synced = false;
    for (const answer of [
      await api.get('/v1/proxies'),
      await api.post('/v1/leases'),
      await api.post(`/v1/leases/${leaseID}/renew`),
    ]) {
      expect(answer.status).toBe(503);
      expect(await bodyOf(answer)).toMatchObject({ error: 'not_ready' });
    }
    expect((await api.get('/healthz')).status).toBe(200);
    expect((await api.post(`/v1/leases/${leaseID}/report`, { result: 'ok' })).status).toBe(204);
  });

  it.each([
    [new LeaseStoreError('the lease file /secret/path is full'), 503, 'store_unavailable'],
    [new TypeError('undefined is not a secret'), 500, 'internal'],
  ])('logs %s and shows nothing of it', async (error, status, code) => {
    const api = leaseApi([aProxy('a')]);
    api.store.grant = () => Promise.reject(error);
    const response = await api.post('/v1/leases');
    expect(response.status).toBe(status);
    const text = await response.text();
    expect(JSON.parse(text)).toMatchObject({ error: code });
    expect(text).not.toContain('secret');
    expect(api.logged[0]).toMatchObject({ err: error, path: '/v1/leases' });
    expect(api.outcomes).toEqual(['failed']);
  });
});
