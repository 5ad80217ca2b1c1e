import { invalid } from './api-error.ts';

export interface Page<T> {
  items: T[];
  nextPageToken?: string;
}

/** One page of a list, by `maxResults` and `pageToken`; never more than `limit`, whatever was asked for. */
export function pageOf<T>(all: T[], query: URLSearchParams, limit: number): Page<T> {
  const wanted = Number(query.get('maxResults') ?? 500);
  if (!Number.isInteger(wanted) || wanted < 0 || wanted > 500) throw invalid('maxResults', wanted, 'Must be 0 to 500.');
  const size = Math.min(wanted || 500, limit);
  const start = offsetOf(query.get('pageToken'));
  const items = all.slice(start, start + size);
  const end = start + items.length;
  return end < all.length ? { items, nextPageToken: Buffer.from(`from ${end}`).toString('base64url') } : { items };
}

function offsetOf(token: string | null): number {
  if (!token) return 0;
  const [, offset] = /^from (\d+)$/.exec(Buffer.from(token, 'base64url').toString()) ?? [];
  if (offset === undefined) throw invalid('pageToken', token, 'Invalid page token.');
  return Number(offset);
}
