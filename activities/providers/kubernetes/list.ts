import type { V1Pod } from '@kubernetes/client-node';
import { ProviderError } from '../../../model/instance.ts';
import { refusalOf } from './errors.ts';
import type { PodsApi } from './pods-api.ts';

const TRIES = 3;

/** Which pods, and how many per page. */
export interface PodQuery {
  namespace: string;
  labelSelector: string;
  limit: number;
}

/**
 * All pods, across pages. A list that takes so long that the server forgets its beginning (410) starts again: the pages
 * that are left would tell of another time, and a pod could be missing from all of them.
 * @throws ProviderError, Transient, if that goes on.
 */
export async function listPods(api: PodsApi, query: PodQuery, signal: AbortSignal): Promise<V1Pod[]> {
  for (let tries = 1; ; tries += 1) {
    const pods: V1Pod[] = [];
    let continueToken: string | undefined;
    try {
      do {
        const page = await api.list({ ...query, continueToken }, signal);
        pods.push(...page.items);
        continueToken = page.metadata?._continue || undefined;
      } while (continueToken);
      return pods;
    } catch (error) {
      if (refusalOf(error)?.code !== 410) throw error;
      if (tries === TRIES)
        throw new ProviderError('Transient', `the list of pods expired ${TRIES} times before its last page was read`);
    }
  }
}
