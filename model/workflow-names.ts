import type { ProxyRef } from './proxy.ts';

/** Names by which the parts of the system reach each other's workflows; also what people type into the Temporal CLI. */
export const PROXY_WORKFLOW = 'proxy';
export const PROBES_WORKFLOW = 'probes';
export const SWEEP_WORKFLOW = 'sweep';
export const TRIM_LEASES_WORKFLOW = 'trimLeases';
export const NUDGE = 'nudge';
export const VERDICT = 'verdict';
export const REPLACE = 'replace';
export const CONFIGURE = 'configure';

/** A recreated CR is another proxy, so the UID is part of the name. */
export const proxyWorkflowID = ({ namespace, name, uid }: ProxyRef): string =>
  `${proxyWorkflowPrefix(namespace)}${name}/${uid}`;

/** With which the workflows of a namespace's Proxies begin; of all namespaces when it is empty. */
export const proxyWorkflowPrefix = (namespace: string): string => (namespace ? `proxy/${namespace}/` : 'proxy/');

/** Keyword search attributes that the Temporal namespace must know before a workflow starts. */
export const SEARCH_ATTRIBUTES = ['ProxyPhase', 'ProxyProvider', 'ProxyName', 'ProxyNamespace'] as const;

/** Probes have a queue of their own, so that they never starve provider calls. */
export const probesTaskQueue = (taskQueue: string): string => `${taskQueue}-probes`;

/** Served by the process that holds the embedded lease store. */
export const leasesTaskQueue = (taskQueue: string): string => `${taskQueue}-leases`;
