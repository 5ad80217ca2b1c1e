import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  isCancellation,
  proxyActivities,
  TimeoutFailure,
} from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import type { InstanceCall, ProviderFailureDetail } from '../activities/instances.ts';
import { type Instance, PROVIDER_ERROR_CLASSES } from '../model/instance.ts';
import type { Failure, Look, ObservedManaged } from '../model/observation.ts';
import { type ProxyRef, placedIn } from '../model/proxy.ts';

/**
 * Calls to the Kubernetes API are tried until they work: without it nothing can be seen or said, so there is nothing else
 * to do meanwhile.
 */
export const kubernetes = proxyActivities<Pick<Activities, 'observe' | 'publish' | 'addFinalizer' | 'removeFinalizer'>>(
  {
    startToCloseTimeout: '10s',
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { initialInterval: '500ms', maximumInterval: '10s' },
  },
);

/**
 * Provider calls get a few quick attempts; the waiting after that is the workflow's, where it can be seen and
 * interrupted. A call that no worker takes up ends as well: its host may be down for days.
 */
const QUICK_ATTEMPTS = { maximumAttempts: 3, initialInterval: '200ms', backoffCoefficient: 3 } as const;

function providerCalls(proxy: ObservedManaged) {
  const { provider } = proxy;
  return proxyActivities<Pick<Activities, 'getInstance' | 'createInstance' | 'deleteInstance'>>({
    ...(provider.configured && { taskQueue: provider.taskQueue }),
    scheduleToStartTimeout: '60s',
    startToCloseTimeout: '5m',
    heartbeatTimeout: '10s',
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: QUICK_ATTEMPTS,
  });
}

/** How a proxy's instance is; a failure to find out is an answer too. */
export async function lookAt(ref: ProxyRef, proxy: ObservedManaged): Promise<Look> {
  try {
    const found = await providerCalls(proxy).getInstance.executeWithOptions(
      { summary: `Look at ${proxy.instanceName} of ${proxy.provider.name}`, startToCloseTimeout: '60s' },
      [callOf(ref, proxy)],
    );
    return found ? { found } : { absent: true };
  } catch (error) {
    return { failed: failureOf(error) };
  }
}

/**
 * Undefined when the world changed since the decision. `mayExist`: an earlier create may have made it already. Throws as
 * Temporal does; see `failureOf`.
 */
export function createInstance(
  ref: ProxyRef,
  proxy: ObservedManaged,
  hash: string,
  mayExist: boolean,
): Promise<Instance | undefined> {
  const { zone } = proxy.status;
  const where = zone === undefined ? '' : ` in ${zone}`;
  const summary = `Create ${proxy.instanceName} with ${proxy.provider.name}${where}`;
  return providerCalls(proxy).createInstance.executeWithOptions({ summary }, [ref, hash, mayExist, zone]);
}

export function deleteInstance(ref: ProxyRef, proxy: ObservedManaged): Promise<'gone' | 'deleting'> {
  const summary = `Delete ${proxy.instanceName} of ${proxy.provider.name}`;
  return providerCalls(proxy).deleteInstance.executeWithOptions({ summary }, [callOf(ref, proxy)]);
}

function callOf({ uid }: ProxyRef, proxy: ObservedManaged): InstanceCall {
  const { provider, instanceName, placement, status, deleting, desired } = proxy;
  return {
    provider: provider.name,
    instance: {
      name: instanceName,
      uid,
      placement: placedIn(placement, status),
      ...(status.providerID && { providerID: status.providerID }),
      ...(!deleting && 'hash' in desired && { specHash: desired.hash }),
    },
  };
}

/** Of a failure that did not come from the activity's own code. */
const UNKNOWN_ATTEMPT = Number.MAX_SAFE_INTEGER;

/** The class and words of a provider call that failed. A cancellation is not a failure and goes on up. */
export function failureOf(error: unknown): Failure {
  if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  if (cause instanceof TimeoutFailure) {
    const unserved = cause.timeoutType === 'SCHEDULE_TO_START';
    const message = unserved ? "No worker serves the provider's task queue" : 'The provider did not answer in time';
    return { class: 'Transient', message, attempt: UNKNOWN_ATTEMPT };
  }
  if (cause instanceof ApplicationFailure) {
    const known = PROVIDER_ERROR_CLASSES.find((name) => name === cause.type);
    const detail = (cause.details?.[0] ?? { attempt: UNKNOWN_ATTEMPT }) as ProviderFailureDetail;
    if (known && known !== 'NotFound') return { class: known, message: cause.message, ...detail };
  }
  return { class: 'Transient', message: cause?.message ?? error.message, attempt: UNKNOWN_ATTEMPT };
}
