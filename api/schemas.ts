import { z } from '@hono/zod-openapi';
import { REPORT_RESULTS } from '../model/lease.ts';

/** Configured bounds of a lease's life. Whole seconds. */
export interface TtlLimits {
  /** What a request without `ttlSeconds` gets. */
  defaultTtlSeconds: number;
  maxTtlSeconds: number;
}

const text = z.string().min(1).max(512);

/** The bodies that clients send. A field that is not listed is refused, so that a misspelt one is noticed. */
export function createRequestSchemas({ defaultTtlSeconds, maxTtlSeconds }: TtlLimits) {
  const error = `must be a whole number of seconds from 1 to ${maxTtlSeconds}, the maximum`;
  const ttlSeconds = z
    .number({ error })
    .int({ error })
    .min(1, { error })
    .max(maxTtlSeconds, { error })
    .default(defaultTtlSeconds)
    .openapi({ description: 'Seconds until the lease expires unless it is renewed. Never shortened silently.' });

  return {
    lease: z
      .strictObject({
        selector: z
          .record(text, z.string().max(512))
          .default({})
          .openapi({
            description: 'Attributes that the proxy must have, each with exactly this value. Empty: any proxy.',
            example: { country: 'de' },
          }),
        ttlSeconds,
        target: text.optional().openapi({
          description:
            'What will be fetched through it, in any spelling that you keep to. Proxies in cooldown for it are left out.',
          example: 'shop.example',
        }),
        owner: text.optional().openapi({ description: 'Who asks, for people to read.', example: 'crawler-7' }),
      })
      .openapi('LeaseRequest'),
    renewal: z.strictObject({ ttlSeconds }).openapi('RenewalRequest'),
    report: z
      .strictObject({
        result: z.enum(REPORT_RESULTS, { error: `must be one of ${REPORT_RESULTS.join(', ')}` }).openapi({
          description: '`rate_limited` and `banned` keep the proxy away from the target for the cooldown window.',
        }),
        target: text.optional().openapi({ description: "Default: the lease's target, or all targets if it has none." }),
      })
      .openapi('Report'),
  };
}

const ATTRIBUTE_PREFIX = 'attr.';

const attributeParameter = z.string().optional().openapi({
  description: 'Only proxies with this attribute, such as `attr.country=de`; may be given for several keys.',
});

/** The query of `GET /v1/proxies`. `attr.{key}` is there for the document: it stands for every key. */
export const proxyQuery = z
  .object({
    healthy: z.enum(['true', 'false'], { error: 'must be true or false, and given once' }).optional(),
    'attr.{key}': attributeParameter,
  })
  .catchall(z.string({ error: 'must be given once' }))
  .superRefine((query, context) => {
    for (const key of Object.keys(query)) {
      if (key === 'healthy' || (key.startsWith(ATTRIBUTE_PREFIX) && key !== ATTRIBUTE_PREFIX)) continue;
      const message = 'is not a known parameter; there are attr.<key>=<value> and healthy=true|false';
      context.addIssue({ code: 'custom', path: [key], message });
    }
  });

/** The attributes asked for in a query that `proxyQuery` has let through. */
export const selectorOfQuery = (query: Record<string, string | undefined>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(query).flatMap(([key, value]) =>
      key.startsWith(ATTRIBUTE_PREFIX) && value !== undefined ? [[key.slice(ATTRIBUTE_PREFIX.length), value]] : [],
    ),
  );

export const leaseIdParams = z.object({ id: z.string().openapi({ description: 'The `leaseID` of the grant.' }) });

export type ProxyAnswer = z.infer<typeof proxyAnswerSchema>;
const proxyAnswerSchema = z
  .object({
    namespace: z.string(),
    name: z.string(),
    host: z.string().nullable().openapi({ description: 'Null until it has an address. Never null in a lease.' }),
    port: z.number().int().nullable(),
    url: z.string().nullable().openapi({
      description: "Ready for a client's proxy setting; carries the credentials, if any, only in a lease.",
      example: 'http://192.0.2.7:3128',
    }),
    attributes: z.record(z.string(), z.string()),
    latencyMillis: z
      .number()
      .nullable()
      .openapi({ description: 'Of a whole probe through the proxy; null before the first.' }),
    healthy: z.boolean(),
    activeLeases: z.number().int(),
  })
  .openapi('Proxy');

export const proxiesAnswer = z
  .object({ proxies: z.array(proxyAnswerSchema), count: z.number().int() })
  .openapi('ProxyList');

export const leaseAnswer = z
  .object({
    leaseID: z.string().openapi({ description: 'Whoever has it can end the lease.' }),
    proxy: proxyAnswerSchema,
    expiresAt: z.iso.datetime(),
    ttlSeconds: z.number().int(),
  })
  .openapi('Lease');

export const errorAnswer = z
  .object({
    error: z.string().openapi({ description: 'For programs.' }),
    message: z.string().openapi({ description: 'For people.' }),
  })
  .openapi('Error');

export const noMatchAnswer = errorAnswer
  .extend({
    error: z.literal('no_match'),
    considered: z
      .number()
      .int()
      .openapi({ description: 'Matching, neither cordoned nor being deleted: the sum of the other three.' }),
    atCapacity: z.number().int(),
    inCooldown: z.number().int(),
    unhealthy: z.number().int(),
  })
  .openapi('NoMatch');
