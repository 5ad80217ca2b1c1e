import { isIP } from 'node:net';
import { z } from 'zod';
import { format, type Network, parseNetwork, subtract } from './cidr.ts';

/** An IP network in a configuration, `10.0.0.0/8`, or one address. */
export const networkText = z.string().check((context) => {
  try {
    parseNetwork(context.value);
  } catch (error) {
    context.issues.push({ code: 'custom', message: (error as Error).message, input: context.value });
  }
});

const ports = z.array(z.int().min(1).max(65535)).min(1);

/** The part of a provider's configuration that says who may use its proxies and what for. Spread it into its schema. */
export const squidAccess = {
  /** Networks that clients come from. There is no default: an open proxy must be somebody's decision. */
  clients: z.array(networkText).min(1),
  /** Exceptions to {@link INTERNAL_NETWORKS}. */
  allowedNetworks: z.array(networkText).default([]),
  /** Target ports of plain http. */
  httpPorts: ports.default([80]),
  /** Target ports of CONNECT. */
  connectPorts: ports.default([443]),
  /** Addresses of the name servers; without, those of /etc/resolv.conf. */
  dnsServers: z.array(z.string().refine((text) => isIP(text) !== 0, 'is an IP address')).optional(),
};

export type SquidAccess = z.output<z.ZodObject<typeof squidAccess>>;

export interface SquidConfOptions extends SquidAccess {
  port: number;
  /** Address to listen on; without, all. */
  listenAddress?: string;
  /** IPv4 address that requests leave from; without, the one that the host's routes choose. */
  outgoingAddress?: string;
  /** Answers a GET of {@link PROBE_PATH} to everybody: to a kubelet, say, which is no client. */
  answersProbes?: boolean;
}

/** One of Squid's own icons, which its error pages show as well: it has it in memory, and asks nobody. */
export const PROBE_PATH = '/squid-internal-static/icons/SN.png';

/**
 * Everything that is not the public Internet (IANA's special-purpose registries, RFC 6890, and multicast). IPv4-mapped
 * addresses are not listed, since Squid matches them as the IPv4 addresses that they are.
 */
export const INTERNAL_NETWORKS: readonly string[] = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10', // carrier-grade NAT
  '127.0.0.0/8',
  '169.254.0.0/16', // link-local: cloud metadata services
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24', // documentation, as the next two but one
  '192.168.0.0/16',
  '198.18.0.0/15', // benchmarks; some clouds' own services
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and broadcast
  '::/96', // unspecified, loopback, IPv4-compatible
  '64:ff9b::/96', // NAT64: IPv4 addresses in disguise, and so the next one
  '64:ff9b:1::/48',
  '100::/64', // discard
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4: IPv4 addresses in disguise
  'fc00::/7', // unique local
  'fe80::/10', // link-local
  'fec0::/10', // site-local
  'ff00::/8', // multicast
];

/** No host has these addresses, so binding to one fails at once. */
const UNUSABLE_IPV4 = '240.0.0.1';
const UNUSABLE_IPV6 = '100::1';
/** Leaves the choice to the host's routes. */
const ANY_IPV4 = '0.0.0.0';
const OWN_NAME = 'egress-proxy';

/**
 * The configuration of an egress Squid (5.x and later), wherever it runs. It assumes options that
 * {@link squidAccess} has accepted.
 *
 * - A target is denied if *any* address that its name resolves to is internal. The exceptions are cut out of the
 *   denied networks instead of being allowed by a rule of their own: a name with one allowed and one internal address
 *   would match such a rule.
 * - A name may resolve to something else between that look and the connection (DNS rebinding). The choice of the
 *   outgoing address looks again, and gives a connection that must not be an address that can't be bound. That look
 *   sees only names that Squid has in its cache; one that it must first look up again is `resolved` at the next request.
 * - Egress is IPv4. An attempt at an AAAA fails at once, as its outgoing address can't be bound, and Squid goes on
 *   with the A record; an IPv6-only target is a 503. Each such attempt is a line of Squid's log, one more reason why
 *   that is never a file.
 * - A probe is allowed by its whole URL, with the name and port that Squid gives to a request for a path of its own. By
 *   its path alone, the same path of any other host would be allowed too, and only `global_internal_static` kept it from
 *   being forwarded there.
 * - The log goes to stderr, for whoever started Squid to read or drop.
 * - The user that Squid runs as, when started by root, is left to its build (Debian: `proxy`).
 */
export function squidConf(options: SquidConfOptions): string {
  const exceptions = options.allowedNetworks.map(parseNetwork);
  const internal = INTERNAL_NETWORKS.map(parseNetwork).flatMap((network) =>
    exceptions.reduce((left, hole) => left.flatMap((part) => subtract(part, hole)), [network]),
  );
  const listen = options.listenAddress ? `${options.listenAddress}:${options.port}` : `${options.port}`;
  const lines = [
    `http_port ${listen}`,
    ...(options.dnsServers?.length ? [`dns_nameservers ${options.dnsServers.join(' ')}`] : []),
    '',
    ...options.clients.map((network) => `acl clients src ${aclText(parseNetwork(network))}`),
    ...internal.map((network) => `acl internal dst ${aclText(network)}`),
    'acl resolved dst all',
    'acl CONNECT method CONNECT',
    'acl http proto HTTP',
    `acl http_ports port ${options.httpPorts.join(' ')}`,
    `acl connect_ports port ${options.connectPorts.join(' ')}`,
    '',
    ...(options.answersProbes ? probeRules(options.port) : []),
    '# Denials first: what is left is allowed to clients alone.',
    'http_access deny !clients',
    'http_access deny manager',
    'http_access deny CONNECT !connect_ports',
    'http_access deny !CONNECT !http_ports',
    'http_access deny !CONNECT !http',
    ...(internal.length > 0 ? ['http_access deny internal'] : []),
    'http_access allow clients',
    'http_access deny all',
    '',
    ...(internal.length > 0 ? [`tcp_outgoing_address ${UNUSABLE_IPV4} internal`] : []),
    `tcp_outgoing_address ${options.outgoingAddress ?? ANY_IPV4} resolved`,
    `tcp_outgoing_address ${UNUSABLE_IPV4}`,
    `tcp_outgoing_address ${UNUSABLE_IPV6}`,
    '',
    '# Tells targets nothing of the client or of itself.',
    'forwarded_for delete',
    'via off',
    `visible_hostname ${OWN_NAME}`,
    'httpd_suppress_version_string on',
    'reply_header_access X-Cache deny all',
    'reply_header_access X-Cache-Lookup deny all',
    '',
    '# Keeps nothing, in memory or on disk.',
    'cache deny all',
    'cache_mem 0',
    'memory_pools off',
    'digest_generation off',
    'client_db off',
    'access_log none',
    'cache_store_log none',
    'cache_log /dev/stderr',
    'netdb_filename none',
    'coredump_dir none',
    'pid_filename none',
    '',
    '# Passes TLS on and speaks none itself, so it need not read the certificates of the system: a third of its start.',
    'tls_outgoing_options disable',
    '',
    '# Room for some 8,000 tunnels.',
    'max_filedescriptors 16384',
    'pinger_enable off',
    'shutdown_lifetime 1 second',
  ];
  return `${lines.join('\n')}\n`;
}

function probeRules(port: number): string[] {
  // A URL has no port where that is the scheme's own.
  const self = port === 80 ? OWN_NAME : `${OWN_NAME}:${port}`;
  return [
    'acl GET method GET',
    `acl probe url_regex ^http://${self}${PROBE_PATH.replaceAll('.', '\\.')}$`,
    'http_access allow GET probe',
    '',
  ];
}

/** Squid has words for the networks of all addresses. */
const aclText = (network: Network): string => (network.prefix === 0 ? `ipv${network.family}` : format(network));
