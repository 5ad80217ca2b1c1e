import { isAbsolute, normalize } from 'node:path';
import { z } from 'zod';
import { networkText, squidAccess } from '../squid-conf.ts';

/** One block of addresses that instances may have: `127.77.0.0/16`, or one address. IPv4, as their egress is. */
const ipv4Network = networkText.refine((text) => !text.includes(':'), 'must be IPv4: that is what instances send from');

/**
 * A `host` provider: Squid processes on the worker's own host, each bound to one address of the host's and sending from it.
 * Instances keep the Squid configuration that they were made with; to apply a change here, replace them.
 */
export const hostConfig = z.strictObject({
  /** Name of this provider instance, the one in `spec.provider`. */
  name: z
    .string()
    .max(63)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, "is lower-case letters, digits and '-'"),
  type: z.literal('host'),
  /** Temporal task queue that the worker on the right host serves. */
  taskQueue: z.string().min(1).optional(),
  /** Absolute path of a folder of this provider's own; two workers on one host may share it. */
  stateDir: z
    .string()
    .refine((path) => isAbsolute(path), 'must be an absolute path')
    .transform((path) => normalize(path).replace(/(?<=.)\/+$/, '')),
  /**
   * Addresses of this host, one per instance: `127.77.0.0/16`, or a list of networks and addresses. The network and
   * broadcast addresses of a network are left out. No two providers may share any.
   */
  addresses: z
    .union([ipv4Network, z.array(ipv4Network).min(1)])
    .transform((addresses) => (Array.isArray(addresses) ? addresses : [addresses])),
  /** The Squid program: a path, or a name that is looked for in PATH and the usual sbin folders. */
  squid: z.string().min(1).default('squid'),
  ...squidAccess,
});

export type HostConfig = z.output<typeof hostConfig>;
