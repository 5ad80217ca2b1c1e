import { AsyncLocalStorage } from 'node:async_hooks';
import { ApiError, CredentialsError } from './compute-api.ts';

/** The headers that authorize a request to the URL. */
export type Authorize = (url: string) => Promise<Headers>;

/** What the generated clients take as `auth`: they ask it for each request, and for nothing else. */
export interface WireAuth {
  getRequestHeaders(url: string): Promise<Headers>;
  fetch(url: string, init: RequestInit): Promise<Response>;
}

export interface Wire {
  auth: WireAuth;
  /** Runs a call of a generated client; its requests end with the signal, or after the timeout in milliseconds. */
  call<T>(signal: AbortSignal, timeout: number, work: () => Promise<T>): Promise<T>;
}

/**
 * Carries the requests of Google's generated REST clients. These have neither a deadline on the wire nor a way to hand a
 * signal to one call, and drop the headers of an answer, among them Retry-After; so the requests pass through here.
 */
export function createWire(authorize: Authorize): Wire {
  const current = new AsyncLocalStorage<AbortSignal>();

  return {
    auth: {
      getRequestHeaders: authorize,
      async fetch(url, { method, headers, body, signal }) {
        const all = new Headers(headers);
        for (const [name, value] of await authorized(authorize, url)) all.set(name, value);
        const signals = [signal, current.getStore()].filter((one) => one instanceof AbortSignal);
        const request = {
          method,
          headers: all,
          body,
          signal: AbortSignal.any(signals),
          redirect: 'error',
        } as RequestInit;
        const response = await fetch(url, request);
        if (response.ok) return response;
        throw await apiError(response);
      },
    },

    async call(signal, timeout, work) {
      const ending = AbortSignal.any([signal, AbortSignal.timeout(timeout)]);
      ending.throwIfAborted();
      // What the requests themselves can't be told, such as a wait for a token, is no longer waited for.
      const { promise: ended, reject } = Promise.withResolvers<never>();
      ending.addEventListener('abort', () => reject(ending.reason), { once: true });
      return Promise.race([current.run(ending, work), ended]);
    },
  };
}

async function authorized(authorize: Authorize, url: string): Promise<Headers> {
  try {
    return await authorize(url);
  } catch (error) {
    const { message, status } = error as Error & { status?: unknown };
    const refused = typeof status === 'number' && status >= 400 && status < 500 && status !== 429;
    const absent = message.startsWith('Could not load the default credentials');
    throw new CredentialsError(message, !refused && !absent);
  }
}

/** `{error: {code, message, errors: [{reason, …}]}}`, unless a proxy on the way answered in its own words. */
async function apiError(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '');
  const retryAfter = retryAfterMillis(response.headers.get('retry-after'));
  try {
    const { error } = JSON.parse(text) as { error: { message?: string; errors?: { reason?: string }[] } };
    const reasons = (error.errors ?? []).flatMap(({ reason }) => (reason ? [reason] : []));
    return new ApiError(response.status, error.message ?? response.statusText, reasons, retryAfter);
  } catch {
    return new ApiError(response.status, `HTTP ${response.status} ${response.statusText}`.trimEnd(), [], retryAfter);
  }
}

/** RFC 9110, 10.2.3: seconds, or a date. */
function retryAfterMillis(header: string | null): number | undefined {
  if (header === null) return undefined;
  const millis = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(millis) ? undefined : Math.max(0, millis);
}
