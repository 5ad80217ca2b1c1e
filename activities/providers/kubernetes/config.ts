import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { squidAccess } from '../squid-conf.ts';

const dnsLabel = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, "is lower-case letters, digits and '-'");

/** As Kubernetes writes amounts: `250m`, `64Mi`, `2`. */
const quantities = z.record(
  z.string().min(1),
  z.union([z.string().regex(/^\d+(\.\d+)?([munkMGTPE]|[KMGTPE]i)?$/, 'is an amount such as 250m or 64Mi'), z.number()]),
);

/** As in a pod's spec; what is left out matches everything. */
const toleration = z.strictObject({
  key: z.string().min(1).optional(),
  operator: z.enum(['Exists', 'Equal']).optional(),
  value: z.string().optional(),
  effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).optional(),
  tolerationSeconds: z.int().min(0).optional(),
});

/**
 * A `kubernetes` provider: Squid pods in one namespace of one cluster. Pods keep what they were made with; to apply a
 * change here, replace them.
 */
export const kubernetesConfig = z.strictObject({
  /**
   * Name of this provider instance, the one in `spec.provider`. Also a label on its pods, and it lists only those: give
   * two installations that share a namespace different names, or each sweeps away the other's.
   */
  name: dnsLabel,
  type: z.literal('kubernetes'),
  /** Temporal task queue of the workers that reach this cluster. */
  taskQueue: z.string().min(1).optional(),
  /** Where the pods are made; it must exist. */
  namespace: dnsLabel,
  /** Absolute path; without, as kubectl finds it: KUBECONFIG, the user's file, or the worker's own service account. */
  kubeconfig: z
    .string()
    .refine((path) => isAbsolute(path), 'must be an absolute path')
    .optional(),
  /** A context of the kubeconfig; without, its current one. */
  context: z.string().min(1).optional(),
  /** An image with Squid 5 or later at /usr/sbin/squid; only that program is run. */
  image: z.string().min(1).default('ubuntu/squid:5.2-22.04_beta'),
  imagePullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).default('IfNotPresent'),
  /** Names of Secrets in the namespace, for a private registry. */
  imagePullSecrets: z.array(z.string().min(1)).default([]),
  /** The memory limit bounds how many tunnels there is room for: some 64 KiB each. */
  resources: z
    .strictObject({
      requests: quantities.default({ cpu: '50m', memory: '64Mi' }),
      limits: quantities.default({ memory: '512Mi' }),
    })
    .prefault({}),
  nodeSelector: z.record(z.string().min(1), z.string()).default({}),
  tolerations: z.array(toleration).default([]),
  ...squidAccess,
});

export type KubernetesConfig = z.output<typeof kubernetesConfig>;
