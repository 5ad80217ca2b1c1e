import { isIP } from 'node:net';
import { Address4, Address6 } from 'ip-address';

/** A block of IP addresses. `base` is the lowest address, as a number. */
export interface Network {
  family: 4 | 6;
  base: bigint;
  prefix: number;
}

const BITS = { 4: 32, 6: 128 } as const;
const ADDRESS = { 4: Address4, 6: Address6 } as const;
const IPV4_MAPPED = { family: 6, base: 0xffffn << 32n, prefix: 96 } as const;

/** How many addresses the network has. */
export const sizeOf = ({ family, prefix }: Network): bigint => 1n << BigInt(BITS[family] - prefix);

/**
 * Reads `10.0.0.0/8`, `fc00::/7` or a single address. Throws an `Error` whose message says what is wrong with the text,
 * for bits beyond the prefix too: such a network is rarely the one that was meant.
 */
export function parseNetwork(text: string): Network {
  const [address = '', length, ...rest] = text.split('/');
  const family = isIP(address);
  if ((family !== 4 && family !== 6) || address.includes('%')) {
    throw new Error(`"${text}" is neither an IP address nor a network such as 10.0.0.0/8`);
  }
  const prefix = length === undefined ? BITS[family] : Number(length);
  if (rest.length > 0 || (length !== undefined && !/^\d{1,3}$/.test(length)) || prefix > BITS[family]) {
    throw new Error(`"${text}": the prefix length of an IPv${family} network is 0 to ${BITS[family]}`);
  }
  const given: Network = { family, base: new ADDRESS[family](address).bigInt(), prefix };
  const network = { ...given, base: given.base - (given.base % sizeOf(given)) };
  if (network.base !== given.base)
    throw new Error(`"${text}" has bits beyond its prefix; is ${format(network)} meant?`);
  if (contains(IPV4_MAPPED, network)) throw new Error(`"${text}" is an IPv4 address in IPv6 dress; write it as IPv4`);
  return network;
}

/** `10.0.0.0/8`, and a single address without prefix. */
export function format({ family, base, prefix }: Network): string {
  const address = formatAddress(family, base);
  return prefix === BITS[family] ? address : `${address}/${prefix}`;
}

/** In the canonical form, for IPv6 that of RFC 5952. */
export const formatAddress = (family: 4 | 6, value: bigint): string => ADDRESS[family].fromBigInt(value).correctForm();

/** Whether all of `inner` lies in `outer`. */
export const contains = (outer: Network, inner: Network): boolean =>
  outer.family === inner.family &&
  outer.prefix <= inner.prefix &&
  inner.base >= outer.base &&
  inner.base < outer.base + sizeOf(outer);

/** What is left of `network` without `hole`: the halves that the hole is not in, from large to small. */
export function subtract(network: Network, hole: Network): Network[] {
  if (contains(hole, network)) return [];
  if (!contains(network, hole)) return [network];
  const lower = { ...network, prefix: network.prefix + 1 };
  const upper = { ...lower, base: lower.base + sizeOf(lower) };
  return [lower, upper].flatMap((half) => subtract(half, hole));
}
