import { OpenAPIHono } from '@hono/zod-openapi';
import { methodNotAllowed } from 'hono/method-not-allowed';
import type { Proxy } from '../model/proxy.ts';
import type { ProxyView } from '../model/proxy-view.ts';
import { bearerToken } from './authentication.ts';
import { createFleet } from './fleet.ts';
import type { LeaseStore } from './leases/store.ts';
import { type LeaseApiEnv, type LeaseOutcome, leaseOutcome } from './outcome.ts';
import { createErrorHandler, methodRefused, notFound, refuseInvalid } from './problem.ts';
import type { Credentials } from './proxy-answer.ts';
import { assumedJson, limitedBody } from './request-body.ts';
import { type ApiLogger, requestLog } from './request-log.ts';
import { addLeaseRoutes } from './routes/leases.ts';
import { addProxyRoutes } from './routes/proxies.ts';
import type { TtlLimits } from './schemas.ts';

export interface LeaseAppDeps {
  view: ProxyView;
  store: LeaseStore;
  ttl: TtlLimits;
  /** What clients of `/v1` must present as bearer token; empty: nothing. */
  token: string;
  /** Credentials of External proxies with a `credentialsSecretRef`, from memory. */
  credentials(proxy: Proxy): Credentials | undefined;
  logger: ApiLogger;
  /** Called once per request under `/v1/leases`. */
  onLease(outcome: LeaseOutcome): void;
  /** Shown in the OpenAPI document. */
  version: string;
}

/**
 * The lease API: everything under `/v1` is behind the token; `/healthz` and `/openapi.json` are open and hold no secrets.
 * Lives as long as the view that it is given.
 */
export function createLeaseApp(deps: LeaseAppDeps): OpenAPIHono<LeaseApiEnv> {
  const app = new OpenAPIHono<LeaseApiEnv>({ defaultHook: refuseInvalid });
  app.onError(createErrorHandler(deps.logger));
  app.notFound(notFound);

  app.use(requestLog(deps.logger));
  app.use(methodNotAllowed({ app, onMethodNotAllowed: methodRefused }));
  app.use('/v1/leases/*', leaseOutcome(deps.onLease));
  app.use('/v1/*', bearerToken(deps.token), limitedBody(), assumedJson());

  app.get('/healthz', (c) => c.json({ status: 'ok' }));
  addProxyRoutes(app, deps);
  addLeaseRoutes(app, { ...deps, fleet: createFleet(deps.view) });

  const security = app.openAPIRegistry.registerComponent('securitySchemes', 'token', {
    type: 'http',
    scheme: 'bearer',
  });
  app.doc31('/openapi.json', {
    openapi: '3.1.0',
    info: { title: 'Egress proxy leases', version: deps.version },
    security: [{ [security.name]: [] }],
  });
  return app;
}

/** How many leases are active on the Proxies that exist now. */
export async function countActiveLeases(view: ProxyView, store: LeaseStore): Promise<number> {
  const counts = await store.countActive([...view.all()].map(({ metadata }) => metadata.uid));
  return counts.reduce((sum, count) => sum + count, 0);
}
