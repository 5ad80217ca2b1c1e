import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import type { Proxy } from '../../model/proxy.ts';
import type { ProxyView } from '../../model/proxy-view.ts';
import { byNamespaceAndName, isHealthy, matches } from '../fleet.ts';
import type { LeaseStore } from '../leases/store.ts';
import type { LeaseApiEnv } from '../outcome.ts';
import { proxyAnswer } from '../proxy-answer.ts';
import { proxiesAnswer, proxyQuery, selectorOfQuery } from '../schemas.ts';
import { errorResponses, json } from './documented.ts';
import { requireSynced } from './readiness.ts';

export interface ProxyRoutesDeps {
  view: ProxyView;
  store: LeaseStore;
}

const listRoute = createRoute({
  method: 'get',
  path: '/v1/proxies',
  summary: 'All proxies, or those with certain attributes',
  request: { query: proxyQuery },
  responses: {
    200: json('In order of namespace and name; none is an empty list.', proxiesAnswer),
    ...errorResponses(400, 401, 503),
  },
});

export function addProxyRoutes(app: OpenAPIHono<LeaseApiEnv>, { view, store }: ProxyRoutesDeps): void {
  app.openapi(listRoute, async (c) => {
    requireSynced(view);
    const { healthy, ...query } = c.req.valid('query');
    const selector = selectorOfQuery(query);
    const asked = (proxy: Proxy): boolean =>
      matches(selector, proxy) && (healthy === undefined || String(isHealthy(proxy)) === healthy);
    const proxies = [...view.all()].filter(asked).sort(byNamespaceAndName);
    const activeLeases = await store.countActive(proxies.map(({ metadata }) => metadata.uid));
    const answers = proxies.map((proxy, index) => proxyAnswer(proxy, activeLeases[index] ?? 0));
    return c.json({ proxies: answers, count: answers.length }, 200);
  });
}
