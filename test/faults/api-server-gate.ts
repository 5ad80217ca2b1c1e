import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { KubeConfig } from '@kubernetes/client-node';
import { keepCertificate } from '../../deploy/sandbox/certificates.ts';
import { writeKubeconfig } from '../../deploy/sandbox/kubeconfig.ts';
import { loopback } from '../../deploy/sandbox/ports.ts';
import { startTcpGate, type TcpGate } from './tcp-gate.ts';

/** `get` is of one object, `other` whatever is not about objects, such as `/version`. */
export interface GateRequest {
  kind: 'list' | 'watch' | 'get' | 'write' | 'other';
  /** Plural, such as `proxies`. */
  resource: string;
  /** A page of a list after the first. */
  continued: boolean;
  url: string;
}

/** A request matches if it has these very properties; `{}` matches all. */
export type Match = Partial<Omit<GateRequest, 'url'>>;

export interface Held {
  /** Resolves once a request is held. */
  arrived: Promise<GateRequest>;
  release(): void;
}

/**
 * A man in the middle before a real API server. Starts out passing; each fault lasts until `pass()`, or for as many
 * requests as it was told. The first fault that matches a request is the one that happens to it.
 */
export interface ApiServerGate extends Omit<TcpGate, 'port'> {
  /** Path of a kubeconfig with the same token that leads through the gate. */
  readonly kubeconfig: string;
  /** Every request that came as far as the gate could read it, in order. */
  readonly requests: readonly GateRequest[];
  count(match: Match): number;
  /** Ends all faults. */
  pass(): Promise<void>;
  /** Answers without asking the server: a failure, or 200 for a list or a watch that ends before it began. */
  answer(match: Match, status: number, options?: { times?: number; retryAfterSeconds?: number }): void;
  /** Passes the request on, but resets the connection instead of giving the answer back. */
  loseAnswer(match: Match, options?: { times?: number }): void;
  /** Keeps the next request from the server until it is released. */
  hold(match: Match): Held;
  /** Each request waits for so long before it is passed on. */
  delay(match: Match, millis: number): void;
  /** An ERROR event in each open watch that matches. Returns in how many. */
  sendError(match: Match, code: number): number;
}

interface Exchange {
  request: GateRequest;
  incoming: IncomingMessage;
  outgoing: ServerResponse;
}

interface Fault {
  match: Match;
  times: number;
  /** True: pass the request on. */
  happen(exchange: Exchange): boolean | Promise<boolean>;
}

/** Stands in front of the API server of this kubeconfig, whose user has a token. */
export async function startApiServerGate(kubeconfigFile: string): Promise<ApiServerGate> {
  const dir = mkdtempSync(join(tmpdir(), 'api-server-gate-'));
  const { server: upstream, ca, token } = accessOf(kubeconfigFile);
  const files = await keepCertificate(dir, { ca: 'API server gate', names: ['localhost'], ips: [loopback] });
  const requests: GateRequest[] = [];
  const watches = new Map<ServerResponse, GateRequest>();
  const faults = new Set<Fault>();

  const relay = createServer({ cert: readFileSync(files.cert), key: readFileSync(files.key) }, serve);
  await new Promise<void>((done) => relay.listen(0, loopback, done));
  const tcp = await startTcpGate((relay.address() as AddressInfo).port);
  const kubeconfig = join(dir, 'kubeconfig');
  writeKubeconfig(kubeconfig, {
    server: `https://${loopback}:${tcp.port}`,
    ca: readFileSync(files.ca, 'utf8'),
    token,
  });

  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const request = describe(incoming);
    requests.push(request);
    const fault = [...faults].find(({ match }) => matches(match, request));
    if (fault) {
      fault.times -= 1;
      if (fault.times <= 0) faults.delete(fault);
      if (!(await fault.happen({ request, incoming, outgoing }))) return;
      // One that gave up while it was held or delayed never reached the server.
      if (outgoing.destroyed) return;
    }
    forward({ request, incoming, outgoing }, (answer) => {
      // One answer for all: bytes as the server sent them, in chunks of our own.
      const { connection, 'transfer-encoding': _, ...headers } = answer.headers;
      outgoing.writeHead(answer.statusCode ?? 502, headers).flushHeaders();
      answer.pipe(outgoing);
      if (request.kind !== 'watch' || answer.statusCode !== 200) return;
      watches.set(outgoing, request);
      outgoing.on('close', () => watches.delete(outgoing));
    });
  }

  /** Of the two connections, each ends with the other. */
  function forward({ incoming, outgoing }: Exchange, onAnswer: (answer: IncomingMessage) => void): void {
    const { host, connection, 'accept-encoding': _, ...headers } = incoming.headers;
    const { method, url } = incoming;
    const onward = httpsRequest(new URL(url ?? '/', upstream), { method, headers, ca, agent: false }, (answer) => {
      answer.on('error', () => reset(outgoing));
      onAnswer(answer);
    });
    onward.on('error', () => reset(outgoing));
    outgoing.on('close', () => onward.destroy());
    incoming.pipe(onward);
  }

  const add = (match: Match, times: number, happen: Fault['happen']) => {
    faults.add({ match, times, happen });
  };

  return {
    kubeconfig,
    requests,
    get connections() {
      return tcp.connections;
    },
    count: (match) => requests.filter((request) => matches(match, request)).length,
    async pass() {
      faults.clear();
      await tcp.pass();
    },
    refuse: tcp.refuse,
    cut: tcp.cut,
    blackHole: tcp.blackHole,
    answer(match, status, { times = Number.POSITIVE_INFINITY, retryAfterSeconds } = {}) {
      add(match, times, ({ outgoing }) => {
        if (retryAfterSeconds !== undefined) outgoing.setHeader('retry-after', retryAfterSeconds);
        outgoing.writeHead(status, { 'content-type': 'application/json' });
        outgoing.end(status === 200 ? '' : JSON.stringify(failure(status)));
        return false;
      });
    },
    loseAnswer(match, { times = Number.POSITIVE_INFINITY } = {}) {
      add(match, times, (exchange) => {
        forward(exchange, () => reset(exchange.outgoing));
        return false;
      });
    },
    hold(match) {
      const arrived = Promise.withResolvers<GateRequest>();
      const released = Promise.withResolvers<void>();
      add(match, 1, async ({ request }) => {
        arrived.resolve(request);
        await released.promise;
        return true;
      });
      return { arrived: arrived.promise, release: released.resolve };
    },
    delay(match, millis) {
      add(match, Number.POSITIVE_INFINITY, async () => {
        await sleep(millis, undefined, { ref: false });
        return true;
      });
    },
    sendError(match, code) {
      const chosen = [...watches].filter(([, request]) => matches(match, request));
      // The server writes whole lines, so ours never lands within one of its own.
      for (const [outgoing] of chosen) outgoing.write(`${JSON.stringify({ type: 'ERROR', object: failure(code) })}\n`);
      return chosen.length;
    },
    async stop() {
      await tcp.stop();
      const closed = new Promise((done) => relay.close(done));
      relay.closeAllConnections();
      await closed;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function accessOf(file: string): { server: string; ca: string; token: string } {
  const config = new KubeConfig();
  config.loadFromFile(file);
  const { server, caData } = config.getCurrentCluster() ?? {};
  const { token } = config.getCurrentUser() ?? {};
  if (!server || !caData || !token) throw new Error(`${file} must hold a server, its CA and a token`);
  return { server, ca: Buffer.from(caData, 'base64').toString('utf8'), token };
}

/** `/api/v1` or `/apis/GROUP/VERSION`, then maybe a namespace, a plural and maybe a name. */
const OBJECTS = /^\/(?:api|apis\/[^/]+)\/[^/]+(?:\/namespaces\/[^/]+(?=\/))?\/(?<plural>[^/]+)(?<name>\/.+)?$/;

function describe({ method, url = '/' }: IncomingMessage): GateRequest {
  const { pathname, searchParams } = new URL(url, 'https://gate');
  const { plural: resource = '', name } = OBJECTS.exec(pathname)?.groups ?? {};
  const kind = (): GateRequest['kind'] => {
    if (!resource) return 'other';
    if (method !== 'GET') return 'write';
    if (['true', '1'].includes(searchParams.get('watch') ?? '')) return 'watch';
    return name ? 'get' : 'list';
  };
  return { kind: kind(), resource, continued: searchParams.has('continue'), url };
}

const matches = (match: Match, request: GateRequest): boolean =>
  Object.entries(match).every(([property, value]) => request[property as keyof Match] === value);

const failure = (code: number) => ({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  code,
  ...(code === 410 && { reason: 'Expired' }),
  message: `injected ${code}`,
});

const reset = ({ socket }: ServerResponse): void => {
  socket?.destroy();
};
