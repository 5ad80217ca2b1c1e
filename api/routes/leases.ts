import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import type { Proxy } from '../../model/proxy.ts';
import type { ProxyView } from '../../model/proxy-view.ts';
import { type Fleet, hasAddress } from '../fleet.ts';
import type { Granted, LeaseStore } from '../leases/store.ts';
import { noMatch } from '../no-match.ts';
import type { LeaseApiEnv } from '../outcome.ts';
import { Problem } from '../problem.ts';
import { type Credentials, proxyAnswer } from '../proxy-answer.ts';
import { createRequestSchemas, leaseAnswer, leaseIdParams, noMatchAnswer, type TtlLimits } from '../schemas.ts';
import { errorResponses, json } from './documented.ts';
import { requireSynced } from './readiness.ts';

export interface LeaseRoutesDeps {
  view: ProxyView;
  fleet: Fleet;
  store: LeaseStore;
  ttl: TtlLimits;
  /** For External proxies that ask for them; undefined when there are none (yet). */
  credentials(proxy: Proxy): Credentials | undefined;
}

/** The routes, and with them their documentation. */
function describeRoutes(ttl: TtlLimits) {
  const requests = createRequestSchemas(ttl);
  const body = <T>(schema: T) => ({ content: { 'application/json': { schema } }, required: true });
  return {
    grant: createRoute({
      method: 'post',
      path: '/v1/leases',
      summary: 'Lease a healthy proxy: the one with the fewest leases, then the fastest',
      request: { body: body(requests.lease) },
      responses: {
        201: json('The lease. `proxy.url` goes into the HTTP client.', leaseAnswer),
        409: json('No proxy to be had. `Retry-After` says when, if waiting helps.', noMatchAnswer),
        ...errorResponses(400, 401, 413, 503),
      },
    }),
    renew: createRoute({
      method: 'post',
      path: '/v1/leases/{id}/renew',
      summary: 'Keep the same proxy, for `ttlSeconds` from now',
      description:
        'Works as well while the proxy is unhealthy, cordoned or in cooldown: who holds it decides when to leave it.',
      request: { params: leaseIdParams, body: body(requests.renewal) },
      responses: {
        200: json('The same lease, with its new end.', leaseAnswer),
        ...errorResponses(400, 401, 410, 413, 503),
      },
    }),
    release: createRoute({
      method: 'delete',
      path: '/v1/leases/{id}',
      summary: 'Give the proxy back',
      request: { params: leaseIdParams },
      responses: { 204: { description: 'The lease is over, if it was not already.' }, ...errorResponses(401, 503) },
    }),
    report: createRoute({
      method: 'post',
      path: '/v1/leases/{id}/report',
      summary: 'Say how the target treated the proxy',
      description: 'Also taken for a cooldown window after the lease has ended. `invalid_result` is a 400 of its own.',
      request: { params: leaseIdParams, body: body(requests.report) },
      responses: { 204: { description: 'Noted.' }, ...errorResponses(400, 401, 404, 413, 503) },
    }),
  };
}

export function addLeaseRoutes(
  app: OpenAPIHono<LeaseApiEnv>,
  { view, fleet, store, ttl, credentials }: LeaseRoutesDeps,
): void {
  const routes = describeRoutes(ttl);

  const leaseBody = (proxy: Proxy, { lease, activeLeases }: Granted, ttlSeconds: number) => ({
    leaseID: lease.id,
    proxy: proxyAnswer(proxy, activeLeases, credentials(proxy)),
    expiresAt: new Date(lease.endsAt).toISOString(),
    ttlSeconds,
  });

  app.openapi(routes.grant, async (c) => {
    requireSynced(view);
    const { selector, ttlSeconds, target, owner } = c.req.valid('json');
    const match = fleet.match(selector);
    const outcome = await store.grant({ candidates: match.candidates, ttlMillis: ttlSeconds * 1000, target, owner });
    if (!outcome.granted) {
      c.set('outcome', 'no_match');
      throw noMatch(match, outcome);
    }
    c.set('leaseID', outcome.lease.id);
    const proxy = view.byUid(outcome.lease.proxyUid);
    if (!isThere(proxy)) {
      await store.release(outcome.lease.id);
      throw new Problem(503, 'proxy_removed', 'the chosen proxy was deleted at this very moment; try again', {
        headers: { 'Retry-After': '1' },
      });
    }
    c.set('outcome', 'granted');
    return c.json(leaseBody(proxy, outcome, ttlSeconds), 201);
  });

  app.openapi(routes.renew, async (c) => {
    requireSynced(view);
    const { id } = c.req.valid('param');
    const { ttlSeconds } = c.req.valid('json');
    const renewed = await store.renew(id, ttlSeconds * 1000);
    const proxy = renewed && view.byUid(renewed.lease.proxyUid);
    if (!renewed || !isThere(proxy)) {
      // Gone is final: a lease that was answered so must not go on taking up room.
      if (renewed) await store.release(id);
      c.set('outcome', 'gone');
      throw new Problem(
        410,
        'lease_gone',
        'this lease has ended, or its proxy is gone; take a new one with POST /v1/leases',
      );
    }
    c.set('outcome', 'renewed');
    return c.json(leaseBody(proxy, renewed, ttlSeconds), 200);
  });

  app.openapi(routes.release, async (c) => {
    await store.release(c.req.valid('param').id);
    c.set('outcome', 'released');
    return c.body(null, 204);
  });

  app.openapi(routes.report, async (c) => {
    const { result, target } = c.req.valid('json');
    if (!(await store.report(c.req.valid('param').id, result, target))) {
      c.set('outcome', 'unknown_lease');
      throw new Problem(404, 'unknown_lease', 'no lease has this id, or it ended too long ago for a report to matter');
    }
    c.set('outcome', `reported_${result}`);
    return c.body(null, 204);
  });
}

/** A proxy that is being deleted or replaced has no machine that could be promised for another while. */
const isThere = (proxy: Proxy | undefined): proxy is Proxy =>
  proxy !== undefined && proxy.metadata.deletionTimestamp === undefined && hasAddress(proxy.status);
