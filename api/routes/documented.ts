import type { z } from '@hono/zod-openapi';
import { errorAnswer } from '../schemas.ts';

/** A JSON body in a route's documentation, which is also what the handler's types are checked against. */
export const json = <T extends z.ZodType>(description: string, schema: T) => ({
  description,
  content: { 'application/json': { schema } },
});

const ERRORS = {
  400: 'The request is wrong: `invalid_json` or `invalid_request`, with a message that names the field.',
  401: '`unauthorized`: the bearer token is missing or wrong.',
  404: '`unknown_lease`: no such lease, or it ended longer than a cooldown window ago.',
  410: '`lease_gone`: expired, released, or its proxy is gone. Lease another one.',
  413: '`body_too_large`: more than 64 KiB.',
  503: '`not_ready`, `store_unavailable` or `proxy_removed`: nothing has changed, try again.',
} as const;

type DocumentedError = ReturnType<typeof json<typeof errorAnswer>>;

/** The error answers of a route, all of one shape. */
export const errorResponses = <S extends keyof typeof ERRORS>(...statuses: S[]): Record<S, DocumentedError> =>
  Object.fromEntries(statuses.map((status) => [status, json(ERRORS[status], errorAnswer)])) as Record<
    S,
    DocumentedError
  >;
