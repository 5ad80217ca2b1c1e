import { createHash } from 'node:crypto';
import { type ManagedSpec, type Placement, portOf } from './proxy.ts';

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/** Lower-case base32 (RFC 4648, no padding) of the first `length` characters' worth of bits. */
function base32(bytes: Uint8Array, length: number): string {
  let text = '';
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = (value << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += BASE32[(value >>> bits) & 31];
      if (text.length === length) return text;
    }
    value &= (1 << bits) - 1;
  }
  return text;
}

/**
 * `proxy-` and 80 bits of SHA-256(CR UID): legal on every provider, and the same on every attempt, so that a create
 * whose answer was lost finds its own machine again.
 */
export function instanceName(uid: string): string {
  return `proxy-${base32(createHash('sha256').update(uid).digest(), 16)}`;
}

/** JSON with sorted keys and without undefined, so that equal values have equal text. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  const entries = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(',')}}`;
}

/**
 * Hash over everything that makes a machine what it is: placement, resolved cloud-init and port. Attributes, lease
 * limits, cordon, health and the zones to fall back on are left out, since they must never churn machines. 32 hex
 * characters: fits any label.
 */
export function specHash(spec: ManagedSpec, cloudInit: string | undefined): string {
  const { zones: _, ...placement }: Placement = spec.placement ?? {};
  const text = canonical({ placement, cloudInit: cloudInit ?? null, port: portOf(spec) });
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
