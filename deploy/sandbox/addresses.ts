import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { SandboxPaths } from './paths.ts';
import type { PortPicker } from './ports.ts';
import type { ProbeTargetAddress } from './probe-target.ts';
import { replaceFile } from './write-file.ts';

/** Where people and scripts expect each port; taken ones move to the next free one above. */
const usualPorts = {
  temporal: 7233,
  temporalUi: 8233,
  temporalHttp: 17243,
  temporalMetrics: 17244,
  leaseApi: 8090,
  metrics: 8080,
  apiServer: 6443,
  etcd: 12379,
} as const;

export type PortName = keyof typeof usualPorts;

/** What a start settled on, kept for the next one. */
export interface Addresses {
  ports: Record<PortName, number>;
  probeTarget: ProbeTargetAddress;
  /** Loopback /16 for the proxies, such as 127.77.0.0/16. */
  proxyRange: string;
}

const port = z.number().int().min(1).max(65_535);
const recorded = z.object({
  ports: z.record(z.enum(Object.keys(usualPorts) as [PortName, ...PortName[]]), port),
  probeTarget: z.object({ host: z.string(), httpPort: port, httpsPort: port }),
  proxyRange: z.string(),
});

const probeTargetPorts = { httpPort: 18_080, httpsPort: 18_443 };

/** Chooses free ports and addresses, those of the last start first, and records them. */
export async function settleAddresses(paths: SandboxPaths, picker: PortPicker): Promise<Addresses> {
  const last = readRecorded(paths.addresses);
  const ports = {} as Record<PortName, number>;
  for (const [name, usual] of Object.entries(usualPorts) as [PortName, number][]) {
    ports[name] = await picker.near(usual, last?.ports[name]);
  }
  const probeTarget = await settleProbeTarget(picker, last?.probeTarget);
  // Recorded instances have their addresses from it, so a range once chosen stays.
  const proxyRange = last?.proxyRange ?? chooseProxyRange(paths, probeTarget, listeningAddresses());
  const addresses = { ports, probeTarget, proxyRange };
  replaceFile(paths.addresses, `${JSON.stringify(addresses, null, 2)}\n`);
  return addresses;
}

async function settleProbeTarget(picker: PortPicker, last?: ProbeTargetAddress): Promise<ProbeTargetAddress> {
  const hosts = Array.from({ length: 250 }, (_, index) => `127.80.0.${index + 1}`);
  const candidates = hosts.map((host) => ({ host, ...probeTargetPorts }));
  for (const candidate of last ? [last, ...candidates] : candidates) {
    if (await picker.all(candidate.host, [candidate.httpPort, candidate.httpsPort])) return candidate;
  }
  throw new Error('No free address for the probe target in 127.80.0.0/24.');
}

/**
 * 127.77.0.0/16 for the first sandbox of a machine. Where another one runs (it holds the first probe target's address, or
 * something listens in that range), one that follows from the state folder's path.
 */
export function chooseProxyRange(
  paths: Pick<SandboxPaths, 'dir' | 'isDefault'>,
  probeTarget: { host: string },
  listening: string[],
): string {
  const free = (octet: number) => !listening.some((address) => address.startsWith(`127.${octet}.`));
  if (paths.isDefault && probeTarget.host === '127.80.0.1' && free(77)) return '127.77.0.0/16';
  const others = Array.from({ length: 63 }, (_, index) => 64 + index).filter((octet) => octet !== 77 && octet !== 80);
  const start = createHash('sha256').update(paths.dir).digest().readUInt32BE() % others.length;
  const rotated = [...others.slice(start), ...others.slice(0, start)];
  return `127.${rotated.find(free) ?? rotated[0]}.0.0/16`;
}

/** IPv4 addresses on which something on this machine listens, from /proc/net/tcp. */
function listeningAddresses(): string[] {
  return parseListening(readFileSync('/proc/net/tcp', 'utf8'));
}

/** Rows of /proc/net/tcp: `sl local_address rem_address st …`; addresses are little-endian hex, state 0A is LISTEN. */
export function parseListening(table: string): string[] {
  return table
    .split('\n')
    .slice(1)
    .map((row) => row.trim().split(/\s+/))
    .filter((fields) => fields[3] === '0A')
    .map((fields) => (fields[1] ?? '').split(':')[0] ?? '')
    .map((hex) => Buffer.from(hex, 'hex').reverse().join('.'));
}

function readRecorded(file: string): z.infer<typeof recorded> | undefined {
  try {
    return recorded.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return undefined;
  }
}
