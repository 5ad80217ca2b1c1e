import { performance } from 'node:perf_hooks';
import { getCACertificates } from 'node:tls';
import { ProxyAgent, request } from 'undici';
import type { ProbeResult } from '../model/verdict.ts';

/** One probe: fetch `url` through the proxy. */
export interface ProbeTarget {
  host: string;
  port: number;
  credentials?: { username: string; password: string };
  url: string;
  expectedStatus: number;
  timeoutMillis: number;
  /** PEM certificates trusted besides the system's. */
  caBundle?: string;
}

export type Probe = (target: ProbeTarget) => Promise<ProbeResult>;

/**
 * Probes through a fresh connection each: a kept one would cache the CONNECT tunnel and never exercise it again.
 * https means CONNECT with TLS verified inside; http a plain proxied GET. `extraCa` is trusted for every probe.
 */
export function createProbe(extraCa?: string): Probe {
  const trusted = [...getCACertificates('default'), ...(extraCa ? [extraCa] : [])];

  return async function probe({ host, port, credentials, url, expectedStatus, timeoutMillis, caBundle }) {
    const started = performance.now();
    const elapsed = () => Math.round(performance.now() - started);
    const agent = new ProxyAgent({
      uri: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
      ...(credentials && { token: basic(credentials) }),
      // Plain http through CONNECT, undici's default, is what a stock Squid denies.
      proxyTunnel: url.startsWith('https:'),
      // The one deadline is the signal below: none of undici's own may come before it.
      connectTimeout: 0,
      headersTimeout: 0,
      bodyTimeout: 0,
      requestTls: { ca: caBundle ? [...trusted, caBundle] : trusted, timeout: 0 },
      proxyTls: { timeout: 0 },
    });
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
  };
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
