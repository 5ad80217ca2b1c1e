import { describe, expect, it } from 'vitest';
import { bodyOf, DEFAULT_TTL, leaseApi, MAX_TTL } from './lease-api.ts';

describe('GET /openapi.json', () => {
  it('describes every call of the API', async () => {
    const { paths } = await bodyOf(leaseApi([]).get('/openapi.json'));
    const calls = Object.entries(paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    );
    expect(calls.sort()).toEqual([
      'delete /v1/leases/{id}',
      'get /v1/proxies',
      'post /v1/leases',
      'post /v1/leases/{id}/renew',
      'post /v1/leases/{id}/report',
    ]);
  });

  it('says what the server goes by: limits, unknown fields, query parameters, the token', async () => {
    const { components, security, paths } = await bodyOf(leaseApi([]).get('/openapi.json'));
    expect(components.schemas.LeaseRequest).toMatchObject({
      additionalProperties: false,
      properties: { ttlSeconds: { type: 'integer', minimum: 1, maximum: MAX_TTL, default: DEFAULT_TTL } },
    });
    const parameters = paths['/v1/proxies'].get.parameters.map(({ name }: { name: string }) => name);
    expect(parameters).toEqual(['healthy', 'attr.{key}']);
    expect(security).toEqual([{ token: [] }]);
    expect(components.securitySchemes.token).toEqual({ type: 'http', scheme: 'bearer' });
  });
});
