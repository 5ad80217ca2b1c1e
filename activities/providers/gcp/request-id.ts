import { createHash, randomUUID } from 'node:crypto';

const DIGITS = 12;

/**
 * A `requestId` for instances.insert, new each time, that tells which spec hash the insert was made from: the API hands it
 * back as the operation's `clientOperationId`, long after whoever sent it was restarted. It is a UUID (version 4) whose
 * first 12 digits are a digest; were all of it, a second try would get the first one's failed operation for an answer.
 */
export function requestIdFor(specHash: string): string {
  const digest = digestOf(specHash);
  return `${digest.slice(0, 8)}-${digest.slice(8)}${randomUUID().slice(DIGITS + 1)}`;
}

export const isRequestFor = (requestId: string, specHash: string): boolean =>
  requestId.replaceAll('-', '').startsWith(digestOf(specHash));

const digestOf = (specHash: string): string => createHash('sha256').update(specHash).digest('hex').slice(0, DIGITS);
