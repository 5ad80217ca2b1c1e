import { ApiException } from '@kubernetes/client-node';
import { ProviderError, type ProviderErrorClass } from '../../../model/instance.ts';

/** What the API server says of a failure, see `metav1.Status`. */
interface Refusal {
  code: number;
  /** `AlreadyExists`, `Forbidden`, `Expired`, … */
  reason?: string;
  message: string;
  retryAfterMillis?: number;
}

/** The API server's answer, if that is what went wrong; a proxy or load balancer before it has other words. */
export function refusalOf(error: unknown): Refusal | undefined {
  if (!(error instanceof ApiException)) return undefined;
  const status = statusIn(error.body);
  const retryAfter = Number(headerOf(error.headers, 'retry-after') ?? status.details?.retryAfterSeconds);
  return {
    code: error.code,
    ...(status.reason && { reason: status.reason }),
    // The client drops what the server says with a 401.
    message: status.message ?? (error.code === 401 ? 'it does not accept the credentials' : `HTTP ${error.code}`),
    ...(retryAfter > 0 && { retryAfterMillis: retryAfter * 1000 }),
  };
}

/**
 * Whatever went wrong, as a ProviderError.
 * @param attempt what was attempted, for people: "make the pod default/proxy-a"
 */
export function providerError(error: unknown, attempt: string, signal: AbortSignal): ProviderError {
  if (error instanceof ProviderError) return error;
  const refusal = refusalOf(error);
  if (refusal) {
    const { code, message, retryAfterMillis } = refusal;
    const text = `Kubernetes did not ${attempt} (${code}): ${message}`;
    return new ProviderError(classOf(code), text, retryAfterMillis === undefined ? {} : { retryAfterMillis });
  }
  if (signal.aborted) return new ProviderError('Transient', `gave up to ${attempt}, as the call was cancelled`);
  const { name, message, cause } = error as Error;
  const why = name === 'TimeoutError' ? 'no answer in time' : cause instanceof Error ? cause.message : message;
  return new ProviderError('Transient', `Kubernetes did not ${attempt}: ${why}`, { cause: error });
}

/**
 * 403 may be RBAC or a ResourceQuota; they can't be told apart for certain, and both are a person's to mend. 401 may be
 * a token that is just being renewed, and 409 a change that came in between.
 */
function classOf(code: number): ProviderErrorClass {
  switch (code) {
    case 404:
      return 'NotFound';
    case 429:
      return 'RateLimited';
    case 400:
    case 403:
    case 422:
      return 'Permanent';
    default:
      return 'Transient';
  }
}

interface StatusBody {
  reason?: string;
  message?: string;
  details?: { retryAfterSeconds?: number };
}

/** The client hands over text where it knows no type for the answer. */
function statusIn(body: unknown): StatusBody {
  if (typeof body !== 'string') return (body ?? {}) as StatusBody;
  try {
    return (JSON.parse(body) ?? {}) as StatusBody;
  } catch {
    return {};
  }
}

function headerOf(headers: Record<string, string>, name: string): string | undefined {
  return Object.entries(headers ?? {}).find(([key]) => key.toLowerCase() === name)?.[1];
}
