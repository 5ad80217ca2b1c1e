import { request } from 'undici';

/** An answer of the lease API: status, and whatever JSON came with it. */
export interface LeaseAnswer {
  status: number;
  body: {
    leaseID?: string;
    proxy?: { name: string; host: string; port: number; url: string };
    error?: string;
    [member: string]: unknown;
  };
}

export interface LeaseClient {
  take(body: object): Promise<LeaseAnswer>;
  renew(leaseID: string, ttlSeconds: number): Promise<LeaseAnswer>;
  report(leaseID: string, result: string): Promise<LeaseAnswer>;
  release(leaseID: string): Promise<LeaseAnswer>;
}

/** @param baseUrl what `.sandbox/env` calls LEASE_API */
export function createLeaseClient(baseUrl: string, token?: string): LeaseClient {
  async function call(method: 'POST' | 'DELETE', path: string, content?: object): Promise<LeaseAnswer> {
    const { statusCode, body } = await request(`${baseUrl}/v1/leases${path}`, {
      method,
      headers: {
        ...(content && { 'content-type': 'application/json' }),
        ...(token && { authorization: `Bearer ${token}` }),
      },
      ...(content && { body: JSON.stringify(content) }),
    });
    const text = await body.text();
    return { status: statusCode, body: text ? JSON.parse(text) : {} };
  }
  return {
    take: (content) => call('POST', '', content),
    renew: (leaseID, ttlSeconds) => call('POST', `/${leaseID}/renew`, { ttlSeconds }),
    report: (leaseID, result) => call('POST', `/${leaseID}/report`, { result }),
    release: (leaseID) => call('DELETE', `/${leaseID}`),
  };
}
