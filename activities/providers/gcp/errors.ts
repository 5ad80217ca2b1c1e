import { ProviderError, type ProviderErrorClass } from '../../../model/instance.ts';
import { ApiError, CredentialsError } from './compute-api.ts';

const MESSAGE_LIMIT = 500;

/** A zone without machines: ZONE_RESOURCE_POOL_EXHAUSTED, …_WITH_DETAILS, and what may yet be added to them. */
const STOCKOUT = [/resource_pool_exhausted/i, /stockout/i];
/** Waiting may help, so it is neither an error nor final. Reasons of HTTP errors and codes of failed operations alike. */
const SCARCITY = [
  ...STOCKOUT,
  /quota_?exceeded/i,
  /limit_?exceeded$/i,
  /ip_space_exhausted/i,
  // A reserved address, on its way from an instance that is being replaced.
  /in_?use_?by_?another_?resource/i,
];
const RATE = [/rate_?limit_?exceeded/i, /operation_?rate_?exceeded/i];
const PASSING = [
  /not_?ready/i,
  /already_?exists/i,
  /internal_?error/i,
  /backend_?error/i,
  /concurrent/i,
  /^preempted$/i,
];
const REFUSAL = [/permission/i, /forbidden/i, /invalid/i, /not_?found/i, /unsupported/i, /condition_?not_?met/i];

/**
 * The class of an answer. Codes say more than the status: 403 is a quota, a rate or a refusal; 400 a mistake or a
 * resource that is still busy. 412 is an organization's policy, which only a person can change.
 * @param codes reasons of an HTTP error, or codes of a failed operation
 * @param status HTTP status, also that of a failed operation
 */
export function classOf(codes: readonly string[], status: number | undefined): ProviderErrorClass {
  const says = (patterns: RegExp[]) => anyOf(codes, patterns);
  if (says(RATE) || status === 429) return 'RateLimited';
  if (says(SCARCITY)) return 'QuotaExceeded';
  if (says(PASSING)) return 'Transient';
  if (says(REFUSAL)) return 'Permanent';
  return status !== undefined && status >= 400 && status < 500 && status !== 408 ? 'Permanent' : 'Transient';
}

/** @param text what could not be done and why, for people; for the others see `classOf` */
export function refusal(
  codes: readonly string[],
  status: number | undefined,
  text: string,
  retryAfterMillis?: number,
): ProviderError {
  return new ProviderError(classOf(codes, status), text, {
    zoneExhausted: anyOf(codes, STOCKOUT),
    ...(retryAfterMillis !== undefined && { retryAfterMillis }),
  });
}

const anyOf = (codes: readonly string[], patterns: RegExp[]): boolean =>
  codes.some((code) => patterns.some((pattern) => pattern.test(code)));

/**
 * Whatever went wrong, as a ProviderError. It has no `cause`: what the libraries throw may hold the request, and so
 * cloud-init, and a logger would print it.
 * @param attempt what was attempted, for people: "make proxy-a in europe-west1-b"
 */
export function providerError(error: unknown, attempt: string, signal: AbortSignal): ProviderError {
  if (error instanceof ProviderError) return error;
  if (error instanceof ApiError) {
    const { status, reasons, message, retryAfterMillis } = error;
    const why = reasons.length > 0 ? reasons.join(', ') : `HTTP ${status}`;
    const text = `Compute Engine did not ${attempt} (${why}): ${harmless(message)}`;
    return refusal(reasons, status, text, retryAfterMillis);
  }
  if (error instanceof CredentialsError) {
    const advice = error.passing
      ? ''
      : '; see https://cloud.google.com/docs/authentication/application-default-credentials';
    const text = `No access token for Compute Engine: ${harmless(error.message)}${advice}`;
    return new ProviderError(error.passing ? 'Transient' : 'Permanent', text);
  }
  if (signal.aborted) return new ProviderError('Transient', `gave up to ${attempt}, as the call was cancelled`);
  const { name, message, cause } = error as Error & { cause?: { code?: unknown } };
  const timedOut = name === 'TimeoutError';
  const why = timedOut ? 'no answer in time' : harmless(typeof cause?.code === 'string' ? cause.code : message);
  return new ProviderError('Transient', `Compute Engine did not ${attempt}: ${why}`);
}

/** The API quotes a value that it refuses; that of metadata is cloud-init, and none of it is repeated. */
export function harmless(message: string): string {
  const spoken = message.replace(/(metadata\S*?)\s*[:=].*$/is, '$1 is not accepted (its value is not shown)');
  return spoken.length > MESSAGE_LIMIT ? `${spoken.slice(0, MESSAGE_LIMIT)}…` : spoken;
}
