import type { MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { Problem } from './problem.ts';

export const MAX_BODY_BYTES = 64 * 1024;

/** Refuses larger bodies with 413, by their declared length or as soon as they get there. */
export const limitedBody = (): MiddlewareHandler =>
  bodyLimit({
    maxSize: MAX_BODY_BYTES,
    onError() {
      throw new Problem(413, 'body_too_large', `the body is larger than ${MAX_BODY_BYTES} bytes`);
    },
  });

const JSON_TYPE = /^application\/([\w.-]+\+)?json\s*(;|$)/i;

/**
 * Takes a body for JSON whatever its type says: `curl -d` calls everything a form, and no other type is served. One that is
 * empty, and was not announced as JSON, is an empty object: all fields of a renewal have defaults.
 */
export function assumedJson(): MiddlewareHandler {
  return async function assumedJson(c, next) {
    if (c.req.method === 'POST' && !JSON_TYPE.test(c.req.header('content-type') ?? '')) {
      const { url, method, headers, signal } = c.req.raw;
      const body = (await c.req.raw.text()) || '{}';
      const relabelled = new Headers(headers);
      relabelled.set('content-type', 'application/json');
      c.req.raw = new Request(url, { method, headers: relabelled, body, signal });
    }
    await next();
  };
}
