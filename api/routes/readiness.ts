import type { ProxyView } from '../../model/proxy-view.ts';
import { Problem } from '../problem.ts';

/** Before the first list of Proxies is in, "none" would be a lie and every lease would look orphaned. */
export function requireSynced(view: ProxyView): void {
  if (view.synced) return;
  throw new Problem(503, 'not_ready', 'the Proxies have not been read from Kubernetes yet; try again in a moment', {
    headers: { 'Retry-After': '1' },
  });
}
