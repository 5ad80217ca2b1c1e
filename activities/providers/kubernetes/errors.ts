import { ApiException } from '@kubernetes/client-node';
import { ProviderError, type ProviderErrorClass } from '../../../model/instance.ts';
import { short } from './words.ts';

/** What the API server says of a failure, see `metav1.Status`. */
interface Refusal {
  code: number;
  /** `AlreadyExists`, `Forbidden`, `Expired`, … */
  reason?: string;
  message: string;
  retryAfterMillis?: number;
}

/**
 * The resource of which the API server itself says that it is not there: `pods`, or `namespaces`. Any other 404 is that of
 * a gateway before it, say, which knows nothing of pods: to believe it would leave some behind.
 */
export function missingKind(error: unknown): string | undefined {
  if (!(error instanceof ApiException) || error.code !== 404) return undefined;
  const { kind, reason, details } = statusIn(error.body);
  return kind === 'Status' && reason === 'NotFound' ? details?.kind : undefined;
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
    message: status.message || (error.code === 401 ? 'it does not accept the credentials' : `HTTP ${error.code}`),
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
    return new ProviderError(classOf(refusal), text, retryAfterMillis === undefined ? {} : { retryAfterMillis });
  }
  if (signal.aborted) return new ProviderError('Transient', `gave up to ${attempt}, as the call was cancelled`);
  const { name, message, cause } = error as Error;
  const why = name === 'TimeoutError' ? 'no answer in time' : cause instanceof Error ? cause.message : message;
  return new ProviderError('Transient', `Kubernetes did not ${attempt}: ${why}`, { cause: error });
}

/** A namespace that has just been made, and that the controller manager has yet to give its service account. */
const NEW_NAMESPACE = /error looking up service account/;

/**
 * 403 may be RBAC or a ResourceQuota; they can't be told apart for certain, and both are a person's to mend. 401 may be
 * a token that is just being renewed, and 409 a change that came in between. Of a 404 that means something, see
 * {@link missingKind}, the caller makes what it is to the call.
 */
function classOf({ code, message }: Refusal): ProviderErrorClass {
  switch (code) {
    case 429:
      return 'RateLimited';
    case 403:
      return NEW_NAMESPACE.test(message) ? 'Transient' : 'Permanent';
    case 400:
    case 422:
      return 'Permanent';
    default:
      return 'Transient';
  }
}

interface StatusBody {
  kind?: string;
  reason?: string;
  message?: string;
  details?: { kind?: string; retryAfterSeconds?: number };
}

/** The client hands over text where it knows no type for the answer. */
function statusIn(body: unknown): StatusBody {
  if (typeof body !== 'string') return (body ?? {}) as StatusBody;
  try {
    return (JSON.parse(body) ?? {}) as StatusBody;
  } catch {
    // The words of a gateway, say, unless they are a page.
    return body.startsWith('<') ? {} : { message: short(body) };
  }
}

function headerOf(headers: Record<string, string>, name: string): string | undefined {
  return Object.entries(headers ?? {}).find(([key]) => key.toLowerCase() === name)?.[1];
}
