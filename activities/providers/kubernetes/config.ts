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

/** Taints of a node that is lost. The cluster deletes its pods 5 minutes later, unless a toleration says else. */
const LOST_NODE_TAINTS = ['node.kubernetes.io/unreachable', 'node.kubernetes.io/not-ready'];

/** As in a pod's spec; what is left out matches everything. */
const toleration = z
  .strictObject({
    key: z.string().min(1).optional(),
    operator: z.enum(['Exists', 'Equal']).optional(),
    value: z.string().optional(),
    effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).optional(),
    tolerationSeconds: z.int().min(0).optional(),
  })
  .refine(
    ({ key, effect = 'NoExecute', tolerationSeconds }) =>
      effect !== 'NoExecute' ||
      tolerationSeconds !== undefined ||
      (key !== undefined && !LOST_NODE_TAINTS.includes(key)),
    {
      // Of a misspelled key, that is all there is to say.
      when: ({ issues }) => issues.length === 0,
      error:
        'tolerates for ever that the node is lost, so its pods would never be replaced: name a key, or an effect other than NoExecute, or add effect: NoExecute with tolerationSeconds: 300',
    },
  );

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
  /**
   * Where the pods are made; it must exist. Pods that are elsewhere are found by their Proxy's providerID, as long as the
   * cluster is the same, but no longer listed, and so not swept: for another namespace or another cluster, add a provider
   * of another name, move the Proxies to it, and remove this one last.
   */
  namespace: dnsLabel,
  /**
   * Absolute path; without, as kubectl finds it: KUBECONFIG, the user's file, or the worker's own service account. What it
   * says may change, but not the cluster: the pods that are in another one would be taken for gone, see `namespace`.
   */
  kubeconfig: z
    .string()
    .refine((path) => isAbsolute(path), 'must be an absolute path')
    .optional(),
  /**
   * A context of the kubeconfig; without, its current one. With it, the cluster does not change when somebody's
   * `kubectl config use-context` does.
   */
  context: z.string().min(1).optional(),
  /** An image with Squid 5 or later at /usr/sbin/squid, and its icons, by which it is probed; only that program is run. */
  image: z.string().min(1).default('ubuntu/squid:5.2-22.04_beta'),
  /** Number of the user and group that Squid runs as: `proxy` in Debian's and Ubuntu's images; any but root's would do. */
  runAsUser: z.int().min(1).default(13),
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
