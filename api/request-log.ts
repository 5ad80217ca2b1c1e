import type { MiddlewareHandler } from 'hono';
import type { LeaseApiEnv } from './outcome.ts';

/** As much of pino as this folder uses. */
export interface ApiLogger {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** One line per request. Headers, query and bodies are never in it: tokens and credentials travel there. */
export function requestLog(logger: ApiLogger): MiddlewareHandler<LeaseApiEnv> {
  return async function requestLog(c, next) {
    const startedAt = performance.now();
    await next();
    const durationMillis = Math.round((performance.now() - startedAt) * 100) / 100;
    const { method, path } = c.req;
    logger.info({ method, path, status: c.res.status, durationMillis, leaseID: c.get('leaseID') }, 'request');
  };
}
