import { connect, createServer, type Server, type Socket } from 'node:net';
import { loopback, randomPort } from '../../deploy/sandbox/ports.ts';

/** Between a client and a server on 127.0.0.1, below whatever they speak. */
export interface TcpGate {
  readonly port: number;
  /** Connections from clients whose end has not been seen; of one in a black hole it can't be. */
  readonly connections: number;
  /** New connections pass again. Those in a black hole never come back, as behind a NAT that has forgotten them. */
  pass(): Promise<void>;
  /** As if the server were down: nothing listens, and what was open is reset. */
  refuse(): Promise<void>;
  /** Resets what is open; the next connection is welcome. */
  cut(): void;
  /** Connections, old and new, stay open, but not a byte passes in either direction. */
  blackHole(): void;
  stop(): Promise<void>;
}

/** Starts a gate on a free port, in front of this one. */
export async function startTcpGate(upstreamPort: number): Promise<TcpGate> {
  /** The other half of each client's connection; none where it began in a black hole. */
  const open = new Map<Socket, Socket | undefined>();
  let swallowing = false;
  const port = await randomPort();
  const server = createServer({ pauseOnConnect: true }, (client) => {
    const upstream = swallowing ? undefined : connect(upstreamPort, loopback);
    open.set(client, upstream);
    client.on('error', () => {});
    client.on('close', () => {
      open.delete(client);
      upstream?.destroy();
    });
    if (!upstream) return;
    upstream.on('error', () => client.resetAndDestroy());
    upstream.on('close', () => client.destroy());
    upstream.pipe(client);
    client.pipe(upstream);
  });

  const cut = () => {
    for (const client of open.keys()) client.resetAndDestroy();
  };
  const refuse = async () => {
    if (!server.listening) return cut();
    const closed = new Promise((done) => server.close(done));
    cut();
    await closed;
  };
  await listen(server, port);

  return {
    port,
    get connections() {
      return open.size;
    },
    async pass() {
      swallowing = false;
      if (!server.listening) await listen(server, port);
    },
    refuse,
    cut,
    blackHole() {
      swallowing = true;
      for (const [client, upstream] of open) {
        if (!upstream) continue;
        open.set(client, undefined);
        // What happens to this half is no longer the client's to know.
        upstream
          .removeAllListeners('close')
          .removeAllListeners('error')
          .on('error', () => {});
        upstream.unpipe(client).pause();
        client.unpipe(upstream).pause();
      }
    },
    stop: refuse,
  };
}

async function listen(server: Server, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(port, loopback, resolve);
  await promise;
  server.off('error', reject);
}
