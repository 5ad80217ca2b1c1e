import type { Instance, ProviderError } from '../../../model/instance.ts';
import type { Location, Operation } from './compute-api.ts';
import { harmless, refusal } from './errors.ts';
import { formatProviderID } from './provider-id.ts';
import { isRequestFor } from './request-id.ts';

/** `over`: it did what it was to do, so a VM that is not there was there once. */
export type InsertOutcome = 'pending' | 'failed' | 'over';

export function outcomeOf({ status, error, httpErrorStatusCode }: Operation): InsertOutcome {
  if (status !== 'DONE') return 'pending';
  return error?.errors?.length || httpErrorStatusCode ? 'failed' : 'over';
}

/** Whether the insert was made from this very spec hash. */
export const madeFrom = ({ clientOperationId }: Operation, specHash: string): boolean =>
  isRequestFor(clientOperationId ?? '', specHash);

/** An instance that the API has promised, and that can't be seen yet. */
export function promised(
  operation: Operation,
  location: Location,
  { uid, specHash = '' }: { uid: string; specHash?: string },
): Instance {
  return {
    name: location.name,
    providerID: formatProviderID(location),
    uid,
    state: 'Provisioning',
    reason: `its insert is ${operation.status ?? 'under way'}`,
    createdAt: new Date(operation.insertTime ?? Date.now()).toISOString(),
    // What another hash was made from, we can't tell; as no hash, it is replaced once it is there.
    specHash: madeFrom(operation, specHash) ? specHash : '',
  };
}

/** Why a failed insert failed: quota, stockout, permission, an invalid field. */
export function insertFailure(
  { error, httpErrorStatusCode, httpErrorMessage }: Operation,
  where: string,
): ProviderError {
  const errors = error?.errors ?? [];
  const codes = errors.flatMap(({ code }) => (code ? [code] : []));
  const words = errors.map(({ code, message }) => [code, harmless(message ?? '')].filter(Boolean).join(': '));
  const why = words.length > 0 ? words.join('; ') : (httpErrorMessage ?? 'it did not say why');
  return refusal(codes, httpErrorStatusCode ?? undefined, `Compute Engine could not make ${where}: ${why}`);
}

/**
 * For how long a failed insert is the answer to a look, counted from its end.
 *
 * The workflow waits after such an answer, and looks again. While the failure holds, it waits again; afterwards the VM
 * is plainly `NotFound`, and made anew. So there are never two tries within that time, however often the workflow is
 * woken, and always another one after it. Only what waiting mends holds for all of it: the other failures need to be told
 * once, and may be mended by a person at any moment.
 */
export function holds(operation: Operation, failure: ProviderError, holdMillis: number, now: number): boolean {
  const age = now - Date.parse(operation.endTime ?? '');
  return age < (failure.class === 'QuotaExceeded' ? holdMillis : holdMillis / 4);
}
