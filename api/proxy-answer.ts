import type { Proxy } from '../model/proxy.ts';
import { isHealthy } from './fleet.ts';
import type { ProxyAnswer } from './schemas.ts';

/** What an External proxy's owner wants to see before it lets anybody through. */
export interface Credentials {
  username: string;
  password: string;
}

/**
 * A Proxy as the API shows it. Only the answer to who holds a lease may be given `credentials`: they are in its `url`, and
 * nowhere else.
 */
export function proxyAnswer(proxy: Proxy, activeLeases: number, credentials?: Credentials): ProxyAnswer {
  const { metadata, spec, status } = proxy;
  const host = status?.ip ?? null;
  const port = status?.port ?? null;
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    host,
    port,
    url: host && port ? proxyUrl(host, port, credentials) : null,
    attributes: spec.attributes ?? {},
    latencyMillis: status?.latencyMillis ?? null,
    healthy: isHealthy(proxy),
    activeLeases,
  };
}

function proxyUrl(host: string, port: number, credentials: Credentials | undefined): string {
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  if (!credentials) return `http://${address}`;
  const { username, password } = credentials;
  return `http://${encodeURIComponent(username)}:${encodeURIComponent(password)}@${address}`;
}
