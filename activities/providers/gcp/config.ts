import { z } from 'zod';
import { RESERVED_LABEL_PREFIX } from './ownership.ts';

/** RFC 1035: what Compute Engine calls its resources, and network tags. */
const resourceName = z
  .string()
  .regex(/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/, "is lower-case letters, digits and '-', and begins with a letter");

/** What Compute Engine takes for labels, without those that are ours to set. A Proxy's own have to pass, too. */
export const gcpLabels = z.record(z.string(), z.string()).check(({ value: labels, issues }) => {
  const refuse = (key: string, message: string) => issues.push({ code: 'custom', path: [key], input: labels, message });
  for (const [key, value] of Object.entries(labels)) {
    if (key.startsWith(RESERVED_LABEL_PREFIX)) refuse(key, `a key must not begin with ${RESERVED_LABEL_PREFIX}`);
    if (!/^[a-z][-_a-z0-9]{0,62}$/.test(key)) {
      refuse(key, "a key is at most 63 lower-case letters, digits, '_' and '-', and begins with a letter");
    }
    if (!/^[-_a-z0-9]{0,63}$/.test(value)) {
      refuse(key, "a value is at most 63 lower-case letters, digits, '_' and '-'");
    }
  }
});

/**
 * A `gcp` provider: Compute Engine VMs in one project. Instances keep what they were made with; to apply a change here,
 * replace them.
 */
export const gcpConfig = z
  .strictObject({
    /**
     * Name of this provider instance, the one in `spec.provider`. Also a label on its VMs, and it lists only those: give
     * two installations that share a project different names, or each sweeps away the other's.
     */
    name: z
      .string()
      .max(63)
      .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, "is lower-case letters, digits and '-'"),
    type: z.literal('gcp'),
    /** Temporal task queue of the workers that hold this project's credentials. */
    taskQueue: z.string().min(1).optional(),
    projectId: z.string().regex(/^([a-z0-9.-]+:)?[a-z][-a-z0-9]{4,28}[a-z0-9]$/, 'is not the id of a project'),
    /** For what a Proxy's placement leaves out. Names, or partial URLs where Compute Engine takes them. */
    defaults: z
      .strictObject({
        zone: resourceName.optional(),
        network: z.string().min(1).optional(),
        /** A name is one in the region of the VM's zone: it suits zones of one region only. */
        subnetwork: z.string().min(1).optional(),
        /** Boot disk; without, as large as the image. */
        diskGB: z.int().min(1).max(65536).optional(),
        /** Such as `pd-balanced`; without, what the API chooses. */
        diskType: resourceName.optional(),
      })
      .default({}),
    /** On every VM, besides those of ours and of the Proxy's placement. */
    labels: gcpLabels.default({}),
    /** Network tags, for the firewall rule that lets clients in; see deploy/samples/gcp. */
    tags: z.array(resourceName).default([]),
    /** Whom the VM may act as. A proxy needs nobody; whoever takes it over then has no rights in the project. */
    serviceAccount: z
      .union([z.literal('none'), z.strictObject({ email: z.email(), scopes: z.array(z.url()).min(1) })])
      .default('none'),
    /** Secure Boot, vTPM and integrity monitoring; the image must support UEFI, as Google's do. */
    shieldedVm: z.boolean().default(true),
    /** Cheaper, and taken back at any time: a preempted VM is `Stopped`, and so replaced. */
    spot: z.boolean().default(false),
    /**
     * `ephemeral`: a public address that lasts as long as the VM. `none`: the proxy is reached, and needs a Cloud NAT to
     * reach others, at its internal one. `static`: names of reserved addresses in the zone's region, one per VM.
     */
    externalAddress: z
      .union([z.enum(['ephemeral', 'none']), z.strictObject({ static: z.array(resourceName).min(1) })])
      .default('ephemeral'),
    /**
     * For so long, a failed insert is the answer to a look at its VM: it is not tried again meanwhile. Shorter than the
     * orchestrator's QUOTA_RETRY, so that the look after that wait leads to another try.
     */
    failedInsertSeconds: z.number().positive().max(3600).default(240),
    /** The API's origin, for Private Service Connect, or for tests; without, Google's public one. */
    endpoint: z
      .url({ protocol: /^https?$/ })
      .refine((url) => URL.canParse(url) && new URL(url).pathname === '/', 'is an origin, without a path')
      .optional(),
    /** `default`: Application Default Credentials, so also Workload Identity. `none`: for a test's own endpoint. */
    credentials: z.enum(['default', 'none']).default('default'),
  })
  .refine(({ endpoint, credentials }) => credentials === 'none' || !endpoint?.startsWith('http:'), {
    path: ['endpoint'],
    message: 'must be https: credentials are never sent in the clear',
  })
  .refine(({ endpoint, credentials }) => credentials === 'default' || endpoint !== undefined, {
    path: ['credentials'],
    message: "can be none for an endpoint of one's own only",
  });

export type GcpConfig = z.output<typeof gcpConfig>;
