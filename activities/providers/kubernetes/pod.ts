import type { V1Container, V1Pod, V1PodSpec, V1Toleration } from '@kubernetes/client-node';
import type { InstanceRequest } from '../../../model/instance.ts';
import { PROBE_PATH, squidConf } from '../squid-conf.ts';
import type { KubernetesConfig } from './config.ts';
import { ownershipOf } from './ownership.ts';

/** The one container of each pod. */
export const SQUID_CONTAINER = 'squid';

const CONF_ANNOTATION = 'proxy-operator-squid-conf';
const CONF_FOLDER = '/etc/egress-proxy';
const CONF_FILE = 'squid.conf';
/** The well-known label of a node's zone. */
const ZONE_LABEL = 'topology.kubernetes.io/zone';
const FIRST_UNPRIVILEGED_PORT = 1024;

const PROBE_TIMEOUT_SECONDS = 2;
/** Looks often while it starts. */
const STARTUP = { periodSeconds: 1, failureThreshold: 60 };
/** Squid gives its clients one second, see `shutdown_lifetime`. */
const GRACE_SECONDS = 5;
/** How long a Squid that never answers lives at most: each look may take its time limit, and then there is its grace. */
export const UNANSWERED_SECONDS =
  STARTUP.failureThreshold * Math.max(STARTUP.periodSeconds, PROBE_TIMEOUT_SECONDS) + GRACE_SECONDS;

/**
 * The pod of an instance. Squid's configuration travels in it, as an annotation that the kubelet writes to a file: so
 * one call makes an instance, and one deletes it. It fits the Pod Security Standard "restricted".
 */
export function podOf(request: InstanceRequest, config: KubernetesConfig): V1Pod {
  const { labels, annotations } = ownershipOf(request, config.name);
  const conf = squidConf({ ...config, port: request.port, answersProbes: true });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: request.name,
      namespace: config.namespace,
      labels,
      annotations: { ...annotations, [CONF_ANNOTATION]: conf },
    },
    spec: podSpec(request, config),
  };
}

function podSpec({ port, placement }: InstanceRequest, config: KubernetesConfig): V1PodSpec {
  const privileged = port < FIRST_UNPRIVILEGED_PORT;
  return {
    containers: [squidContainer(port, config)],
    // A Squid that crashes comes back at once, in the same pod and so under the same address.
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: GRACE_SECONDS,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    // A proxy has no business with the names of the cluster; they would only tell crawlers what there is.
    dnsPolicy: 'Default',
    nodeSelector: { ...config.nodeSelector, ...(placement.zone && { [ZONE_LABEL]: placement.zone }) },
    tolerations: config.tolerations.map(defined),
    imagePullSecrets: config.imagePullSecrets.map((name) => ({ name })),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: config.runAsUser,
      runAsGroup: config.runAsUser,
      seccompProfile: { type: 'RuntimeDefault' },
      // Instead of a capability: it is one of the sysctls that the kubelet takes for safe.
      ...(privileged && { sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: `${port}` }] }),
    },
    volumes: [
      {
        name: 'conf',
        downwardAPI: {
          items: [{ path: CONF_FILE, fieldRef: { fieldPath: `metadata.annotations['${CONF_ANNOTATION}']` } }],
        },
      },
    ],
  };
}

function squidContainer(port: number, { image, imagePullPolicy, resources }: KubernetesConfig): V1Container {
  // Not that its port is open: the kernel accepts connections for a Squid that hangs as well.
  const answers = { httpGet: { path: PROBE_PATH, port }, timeoutSeconds: PROBE_TIMEOUT_SECONDS };
  return {
    name: SQUID_CONTAINER,
    image,
    imagePullPolicy,
    // In the foreground, as one process, whatever the image's own entry point does.
    command: ['/usr/sbin/squid', '-N', '-f', `${CONF_FOLDER}/${CONF_FILE}`],
    ports: [{ name: 'proxy', containerPort: port }],
    resources: { requests: asText(resources.requests), limits: asText(resources.limits) },
    // No liveness probe: a Squid with no room for one more connection would be killed with all that it has.
    startupProbe: { ...answers, ...STARTUP },
    readinessProbe: { ...answers, periodSeconds: 5 },
    // So that the state of a container that ended says why, in Squid's own words.
    terminationMessagePolicy: 'FallbackToLogsOnError',
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: [{ name: 'conf', mountPath: CONF_FOLDER, readOnly: true }],
  };
}

/** Without what was left out: the client's types know nothing of members that are there and undefined. */
const defined = (toleration: KubernetesConfig['tolerations'][number]): V1Toleration =>
  JSON.parse(JSON.stringify(toleration)) as V1Toleration;

const asText = (quantities: Record<string, string | number>): Record<string, string> =>
  Object.fromEntries(Object.entries(quantities).map(([resource, amount]) => [resource, `${amount}`]));
