import { createHash, timingSafeEqual } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';
import { Problem } from './problem.ts';

/**
 * Lets through requests with `Authorization: Bearer <token>`; all of them when the token is empty. hono's own bearerAuth
 * refuses tokens with characters outside of RFC 6750's, even when they are the configured one.
 */
export function bearerToken(token: string): MiddlewareHandler {
  const expected = digest(token);
  return async function bearerToken(c, next) {
    if (token !== '' && !timingSafeEqual(digest(presented(c.req.header('authorization'))), expected)) {
      throw new Problem(
        401,
        'unauthorized',
        'send the header "Authorization: Bearer <token>" with the token of this API',
        {
          headers: { 'WWW-Authenticate': 'Bearer' },
        },
      );
    }
    await next();
  };
}

const presented = (header: string | undefined): string => /^bearer +(.*)$/i.exec(header ?? '')?.[1] ?? '';

/** Equal lengths, whatever was sent: the comparison takes the same time and says nothing about the token's length. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
