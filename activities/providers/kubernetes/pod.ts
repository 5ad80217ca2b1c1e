import type { V1Container, V1Pod, V1PodSpec, V1Toleration } from '@kubernetes/client-node';
import type { InstanceRequest } from '../../../model/instance.ts';
import { squidConf } from '../squid-conf.ts';
import type { KubernetesConfig } from './config.ts';
import { ownershipOf } from './ownership.ts';

/** The one container of each pod. */
export const SQUID_CONTAINER = 'squid';

const CONF_ANNOTATION = 'proxy-operator-squid-conf';
const CONF_FOLDER = '/etc/egress-proxy';
const CONF_FILE = 'squid.conf';
/** User and group `proxy` of Debian's and Ubuntu's images; any but root would do. */
const PROXY_USER = 13;
/** The well-known label of a node's zone. */
const ZONE_LABEL = 'topology.kubernetes.io/zone';
const FIRST_UNPRIVILEGED_PORT = 1024;

/**
 * The pod of an instance. Squid's configuration travels in it, as an annotation that the kubelet writes to a file: so
 * one call makes an instance, and one deletes it. It fits the Pod Security Standard "restricted".
 */
export function podOf(request: InstanceRequest, config: KubernetesConfig): V1Pod {
  const { labels, annotations } = ownershipOf(request, config.name);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: request.name,
      namespace: config.namespace,
      labels,
      annotations: { ...annotations, [CONF_ANNOTATION]: squidConf({ ...config, port: request.port }) },
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
    // Squid gives its clients one second, see `shutdown_lifetime`.
    terminationGracePeriodSeconds: 5,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    // A proxy has no business with the names of the cluster; they would only tell crawlers what there is.
    dnsPolicy: 'Default',
    nodeSelector: { ...config.nodeSelector, ...(placement.zone && { [ZONE_LABEL]: placement.zone }) },
    tolerations: config.tolerations.map(defined),
    imagePullSecrets: config.imagePullSecrets.map((name) => ({ name })),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: PROXY_USER,
      runAsGroup: PROXY_USER,
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
  // Squid answers nobody but its clients, and the kubelet need not be one: that it accepts is all that can be asked.
  const accepts = { tcpSocket: { port }, timeoutSeconds: 2 };
  return {
    name: SQUID_CONTAINER,
    image,
    imagePullPolicy,
    // In the foreground, as one process, whatever the image's own entry point does.
    command: ['/usr/sbin/squid', '-N', '-f', `${CONF_FOLDER}/${CONF_FILE}`],
    ports: [{ name: 'proxy', containerPort: port }],
    resources: { requests: asText(resources.requests), limits: asText(resources.limits) },
    // Looks often while it starts and seldom afterwards. No liveness probe: a Squid with no room for one more
    // connection would be killed with all that it has.
    startupProbe: { ...accepts, periodSeconds: 1, failureThreshold: 60 },
    readinessProbe: { ...accepts, periodSeconds: 5 },
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
