import { performance } from 'node:perf_hooks';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { Agent, type Dispatcher, ProxyAgent, request } from 'undici';
import type { ProbeResult } from '../model/verdict.ts';

/** What a successful answer of a URL is. */
export interface Expectation {
  expectedStatus: number;
  timeoutMillis: number;
  /** PEM certificates trusted besides the system's. */
  caBundle?: string;
}

/** One probe: fetch `url` through the proxy. */
export interface ProbeTarget extends Expectation {
  host: string;
  port: number;
  credentials?: { username: string; password: string };
  url: string;
}

export type Probe = (target: ProbeTarget) => Promise<ProbeResult>;

/**
 * Probes through a fresh connection each: a kept one would cache the CONNECT tunnel and never exercise it again.
 * https means CONNECT with TLS verified inside; http a plain proxied GET. `extraCa` is trusted for every probe.
 */
export function createProbe(extraCa?: string): Probe {
  const secureContext = createSecureContexts(extraCa);
  return (target) => {
    const { host, port, credentials, url, caBundle } = target;
    const agent = new ProxyAgent({
      uri: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
      ...(credentials && { token: basic(credentials) }),
      // Plain http through CONNECT, undici's default, is what a stock Squid denies.
      proxyTunnel: url.startsWith('https:'),
      ...NO_LIMITS,
      requestTls: { secureContext: secureContext(caBundle), timeout: 0 },
      proxyTls: { timeout: 0 },
    });
    return fetchOnce(agent, url, target);
  };
}

/** Fetches a probe's URL as a probe does, but without any proxy: is the target there at all? */
export function createControlProbe(extraCa?: string): (url: string, expectation: Expectation) => Promise<ProbeResult> {
  const secureContext = createSecureContexts(extraCa);
  return (url, expectation) => {
    const connect = { secureContext: secureContext(expectation.caBundle), timeout: 0 };
    return fetchOnce(new Agent({ ...NO_LIMITS, connect }), url, expectation);
  };
}

/** The one deadline is the probe's own: none of undici's defaults may come before it. */
const NO_LIMITS = { connectTimeout: 0, headersTimeout: 0, bodyTimeout: 0 } as const;

/** By CA bundle, since reading all the CAs of a system takes tens of milliseconds, in which nothing else happens. */
function createSecureContexts(extraCa: string | undefined): (caBundle: string | undefined) => SecureContext {
  const contexts = new Map<string, SecureContext>();
  return (caBundle = '') => {
    const known = contexts.get(caBundle);
    if (known) return known;
    const ca = [...getCACertificates('default'), extraCa, caBundle].filter((pem) => pem !== undefined && pem !== '');
    const context = createSecureContext({ ca: ca as string[] });
    contexts.set(caBundle, context);
    return context;
  };
}

/** One request, and the end of its dispatcher. */
async function fetchOnce(
  agent: Dispatcher,
  url: string,
  { expectedStatus, timeoutMillis }: Expectation,
): Promise<ProbeResult> {
  const started = performance.now();
  const elapsed = () => Math.round(performance.now() - started);
  try {
    const signal = AbortSignal.timeout(timeoutMillis);
    const { statusCode, body } = await request(url, {
      dispatcher: agent,
      signal,
      headers: { 'user-agent': 'egress-proxy-probe' },
    });
    await body.dump({ limit: 64 * 1024, signal });
    const latencyMillis = elapsed();
    if (statusCode === expectedStatus) return { ok: true, latencyMillis };
    return { ok: false, latencyMillis, message: `status ${statusCode}, expected ${expectedStatus}` };
  } catch (error) {
    return { ok: false, latencyMillis: elapsed(), message: reasonOf(error, timeoutMillis) };
  } finally {
    // Not awaited: a proxy that keeps its socket half open must not hold up the next probe.
    void agent.destroy().catch(() => {});
  }
}

function basic({ username, password }: { username: string; password: string }): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

function reasonOf(error: unknown, timeoutMillis: number): string {
  if (!(error instanceof Error)) return 'failed';
  if (error.name === 'TimeoutError') return `no answer within ${timeoutMillis / 1000} s`;
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
  return `${error.message}${cause}`;
}
