import { createServer } from 'node:net';
import { SandboxError } from './failure.ts';

export const loopback = '127.0.0.1';

/** How far above the wanted port we look before giving up. */
const reach = 200;

/**
 * Finds ports that are free and keeps them so: it listens on each until the part that gets it is about to start. Seconds
 * lie between the two, and another sandbox may be starting beside us.
 */
export interface PortPicker {
  /** The first that is free of: the port used last time, the wanted one, the ones above it. */
  near(wanted: number, lastTime?: number): Promise<number>;
  /** Whether all these ports are free on that address; if so, they are held. */
  all(host: string, ports: number[]): Promise<boolean>;
  /** Lets go of these ports, on whatever address; of all without an argument. */
  release(...ports: number[]): Promise<void>;
}

/** Something that occupies a port until it is closed. */
export interface Hold {
  close(): Promise<void>;
}

export function createPortPicker(
  holdPort: (port: number, host: string) => Promise<Hold | undefined> = listenOn,
): PortPicker {
  const held: { port: number; hold: Hold }[] = [];
  const take = async (port: number, host: string) => {
    const hold = await holdPort(port, host);
    if (hold) held.push({ port, hold });
    return hold !== undefined;
  };
  const release = async (ports: number[]) => {
    const ours = held.filter(({ port }) => ports.includes(port));
    for (const entry of ours) held.splice(held.indexOf(entry), 1);
    await Promise.all(ours.map(({ hold }) => hold.close()));
  };
  return {
    async near(wanted, lastTime) {
      if (lastTime !== undefined && (await take(lastTime, loopback))) return lastTime;
      for (let port = wanted; port < wanted + reach; port++) {
        if (await take(port, loopback)) return port;
      }
      throw new SandboxError(`No free port on ${loopback} between ${wanted} and ${wanted + reach - 1}.`);
    },
    async all(host, ports) {
      for (const [index, port] of ports.entries()) {
        if (await take(port, host)) continue;
        await release(ports.slice(0, index));
        return false;
      }
      return true;
    },
    release: (...ports) => release(ports.length > 0 ? ports : held.map(({ port }) => port)),
  };
}

/**
 * A free port for a test's server. Below the range from which the kernel picks ports for outgoing connections
 * (ip_local_port_range, from 32768), so that none of those takes it before the server does.
 */
export async function randomPort(host: string = loopback): Promise<number> {
  for (let attempt = 0; attempt < reach; attempt++) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    if (await canListen(port, host)) return port;
  }
  throw new SandboxError(`No free port on ${host} between 20000 and 31999.`);
}

async function canListen(port: number, host: string): Promise<boolean> {
  const hold = await listenOn(port, host);
  await hold?.close();
  return hold !== undefined;
}

function listenOn(port: number, host: string): Promise<Hold | undefined> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', () => resolve(undefined));
    const close = () => new Promise<void>((closed) => server.close(() => closed()));
    server.listen({ port, host, exclusive: true }, () => resolve({ close }));
  });
}
