import { onTestFinished } from 'vitest';
import { createLeaseApp } from '../../api/app.ts';
import { openEmbeddedLeaseStore } from '../../api/leases/embedded.ts';
import type { LeaseStore } from '../../api/leases/store.ts';
import type { LeaseOutcome } from '../../api/outcome.ts';
import type { Proxy } from '../../model/proxy.ts';
import { temporaryLeaseFile } from './leases/lease-files.ts';
import { type EditableView, editableView } from './proxies.ts';

export interface LeaseApiUnderTest {
  view: EditableView;
  store: LeaseStore;
  outcomes: LeaseOutcome[];
  logged: object[];
  /** Moves the store's clock. */
  pass(seconds: number): void;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  post(path: string, body?: unknown): Promise<Response>;
  request(path: string, init: RequestInit): Promise<Response>;
}

export const MAX_TTL = 3600;
export const DEFAULT_TTL = 300;
export const COOLDOWN_SECONDS = 600;

/** The whole API on an embedded store, without a socket. */
export function leaseApi(proxies: Proxy[], options: { token?: string; store?: LeaseStore } = {}): LeaseApiUnderTest {
  let now = Date.UTC(2026, 0, 1);
  const settings = { cooldownMillis: COOLDOWN_SECONDS * 1000, clock: () => now };
  const store = options.store ?? openEmbeddedLeaseStore(temporaryLeaseFile(), settings);
  onTestFinished(() => store.close());
  const view = editableView(...proxies);
  const outcomes: LeaseOutcome[] = [];
  const logged: object[] = [];
  const log = (fields: object, message: string): void => {
    logged.push({ ...fields, message });
  };
  const app = createLeaseApp({
    view,
    store,
    ttl: { defaultTtlSeconds: DEFAULT_TTL, maxTtlSeconds: MAX_TTL },
    token: options.token ?? '',
    credentials: ({ spec }) => (spec.mode === 'External' ? { username: 'us er', password: 'p@ss/w:rd' } : undefined),
    logger: { info: log, error: log },
    onLease: (outcome) => outcomes.push(outcome),
    version: '0.0.0',
  });
  const request = async (path: string, init: RequestInit): Promise<Response> => app.request(path, init);
  return {
    view,
    store,
    outcomes,
    logged,
    pass(seconds) {
      now += seconds * 1000;
    },
    get: (path, headers = {}) => request(path, { headers }),
    post: (path, body = {}) =>
      request(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    request,
  };
}

/** An answer's JSON, loosely typed: the tests say what must be in it. */
// biome-ignore lint/suspicious/noExplicitAny: anything may come back
export const bodyOf = async (response: Response | Promise<Response>): Promise<any> => (await response).json();
