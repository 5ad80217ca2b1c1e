import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { z } from 'zod';
import { LeaseStoreError } from './leases/store.ts';
import type { ApiLogger } from './request-log.ts';

/** An answer that is an error. Thrown anywhere below the app; its JSON is `{error, message, ...details}`. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly status: ContentfulStatusCode;
  /** The word that programs go by, in snake_case. */
  readonly error: string;
  readonly details: Readonly<Record<string, number>>;
  readonly headers: Readonly<Record<string, string>>;

  /** `message` says what is wrong with which field, and what to do about it. */
  constructor(
    status: ContentfulStatusCode,
    error: string,
    message: string,
    more: { details?: Record<string, number>; headers?: Record<string, string> } = {},
  ) {
    super(message);
    this.status = status;
    this.error = error;
    this.details = more.details ?? {};
    this.headers = more.headers ?? {};
  }
}

export function problemResponse(c: Context, { status, error, message, details, headers }: Problem): Response {
  return c.json({ error, message, ...details }, status, headers);
}

/** For `app.onError`: every error becomes JSON, and what we did not foresee is logged, not shown. */
export const createErrorHandler =
  (logger: ApiLogger) =>
  (error: Error, c: Context): Response =>
    problemResponse(c, toProblem(error, c, logger));

function toProblem(error: Error, c: Context, logger: ApiLogger): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof HTTPException && error.status === 400) {
    return new Problem(400, 'invalid_json', 'the body is not JSON; send an object such as {"ttlSeconds": 60}');
  }
  logger.error({ err: error, method: c.req.method, path: c.req.path }, 'request failed');
  if (error instanceof LeaseStoreError) {
    return new Problem(
      503,
      'store_unavailable',
      'the lease store does not take this now; nothing has changed, try again',
      {
        headers: { 'Retry-After': '1' },
      },
    );
  }
  return new Problem(500, 'internal', 'an error on our side; it is in the log of the lease API');
}

/** For zod-openapi's `defaultHook`: refuses what a schema did not let through. */
export function refuseInvalid(
  result: { target: string } & ({ success: true } | { success: false; error: z.ZodError }),
): undefined {
  if (result.success) return;
  const { issues } = result.error;
  const error = issues.some(({ path }) => path[0] === 'result') ? 'invalid_result' : 'invalid_request';
  throw new Problem(400, error, issues.map((issue) => explain(issue, result.target)).join('; '));
}

function explain(issue: z.core.$ZodIssue, target: string): string {
  const field = issue.path.length > 0 ? issue.path.join('.') : target === 'json' ? 'the body' : target;
  if (issue.code === 'unrecognized_keys') {
    return `${issue.keys.map((key) => `"${key}"`).join(', ')} in ${field}: no such field; check the spelling against /openapi.json`;
  }
  return `${field} ${issue.message.replace(/^Invalid input: |^Too (big|small): /, '')}`;
}

export const notFound = (c: Context): Response =>
  problemResponse(c, new Problem(404, 'not_found', `there is no ${c.req.path}; /openapi.json lists what there is`));

export const methodRefused = (c: Context, methods: readonly string[]): Response => {
  const allow = methods.join(', ');
  return problemResponse(
    c,
    new Problem(405, 'method_not_allowed', `${c.req.path} takes ${allow}, not ${c.req.method}`, {
      headers: { Allow: allow },
    }),
  );
};
