import { z } from 'zod';

/** How this Compute Engine behaves while nothing goes wrong. Durations in milliseconds; they may change at any time. */
export const settingsSchema = z.strictObject({
  /** From an accepted insert until its operation is DONE and the VM RUNNING. */
  insertMillis: z.number().min(0).default(60),
  /** From an accepted insert until instances.get shows the VM. */
  visibleMillis: z.number().min(0).default(0),
  /** From RUNNING until there is a natIP; null: there never is. */
  natMillis: z.number().min(0).nullable().default(0),
  deleteMillis: z.number().min(0).default(60),
  /** By how much lists lag behind what instances.get shows: new VMs come late, and deleted ones linger. */
  listLagMillis: z.number().min(0).default(0),
  /** At most so many resources on a page. */
  pageSize: z.int().min(1).max(500).default(500),
  /** Zones that aggregatedList has nothing to say about but a warning. */
  unreachableZones: z.array(z.string()).default([]),
  /** At most so many VMs in a region; the insert is accepted, and its operation fails with QUOTA_EXCEEDED. */
  instanceQuota: z.int().min(0).nullable().default(null),
  /** Zone → code that the operation of an insert fails with: ZONE_RESOURCE_POOL_EXHAUSTED, …_WITH_DETAILS. */
  stockouts: z.record(z.string(), z.string()).default({}),
  /** First two octets of ephemeral natIPs. The default is a range for benchmarks, and nobody's (RFC 2544). */
  natPrefix: z
    .string()
    .regex(/^\d+\.\d+$/)
    .default('198.18'),
});

export type Settings = z.output<typeof settingsSchema>;
