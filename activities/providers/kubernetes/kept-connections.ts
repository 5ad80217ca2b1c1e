import { isDeepStrictEqual } from 'node:util';
import { type Cluster, type DispatcherOptions, KubeConfig, type RequestContext } from '@kubernetes/client-node';
import { Agent } from 'undici';

type Connect = NonNullable<Agent.Options['connect']>;
type TlsOptions = Parameters<KubeConfig['createDispatcherOptions']>[1];

/**
 * A KubeConfig whose clients keep their connections for the next requests. The client's own (2.0.1) makes an agent per
 * request, and with it a TLS handshake, which costs either side several times what the request does.
 *
 * HTTP/1.1, so that a half-open connection is met by one request only: its time limit ends the two together. What is
 * idle for a few seconds (undici's default) is closed, well before load balancers forget it.
 */
export class KeptConnections extends KubeConfig {
  #kept: { connect: Connect; agent: Agent } | undefined;

  /** Called for each request. Renewed certificates are another `connect`, and what they replace ends by being idle. */
  override createDispatcherOptions(cluster: Cluster | null, tls: TlsOptions): DispatcherOptions {
    const options = super.createDispatcherOptions(cluster, tls);
    if (options.type !== 'agent') {
      // To a cluster behind a proxy, requests go as the client sends them.
      this.#kept = undefined;
      return options;
    }
    const connect = options.connect as Connect;
    if (!isDeepStrictEqual(this.#kept?.connect, connect)) {
      this.#kept = { connect, agent: new Agent({ connect, allowH2: false }) };
    }
    return { type: 'none' };
  }

  override async applySecurityAuthentication(context: RequestContext): Promise<void> {
    await super.applySecurityAuthentication(context);
    if (this.#kept) context.setDispatcher(this.#kept.agent);
  }
}
