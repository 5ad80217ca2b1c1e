import { createHash } from 'node:crypto';
import { formatAddress, type Network, parseNetwork, sizeOf } from '../cidr.ts';

/** The addresses that instances may have, in a fixed order. */
export interface AddressRange {
  readonly size: number;
  /** Every address once. The name picks the first, so that an instance made anew tends to have its old address. */
  candidates(name: string): Generator<string>;
}

/** @param networks - IPv4 networks and single addresses; network and broadcast addresses are left out. */
export function createAddressRange(networks: readonly string[]): AddressRange {
  const blocks = networks.map((text) => usable(parseNetwork(text)));
  const size = blocks.reduce((sum, block) => sum + block.count, 0);

  const at = (index: number): string => {
    let rest = index;
    for (const { first, count } of blocks) {
      if (rest < count) return formatAddress(4, first + BigInt(rest));
      rest -= count;
    }
    throw new RangeError(`address ${index} of ${size}`);
  };

  return {
    size,
    *candidates(name) {
      const start = createHash('sha256').update(name).digest().readUInt32BE() % size;
      for (let step = 0; step < size; step += 1) yield at((start + step) % size);
    },
  };
}

/** A /31 has neither a network nor a broadcast address (RFC 3021), and a /32 is one host. */
function usable(network: Network): { first: bigint; count: number } {
  const size = Number(sizeOf(network));
  return network.prefix >= 31 ? { first: network.base, count: size } : { first: network.base + 1n, count: size - 2 };
}
