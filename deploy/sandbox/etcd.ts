import { join } from 'node:path';
import { httpGet } from './http-get.ts';
import { loopback, randomPort } from './ports.ts';
import { type Child, type ChildSpec, startChild } from './processes.ts';

/** What every part's start function takes, beside its own. */
export interface PartOptions extends Pick<ChildSpec, 'recordDir' | 'signal' | 'onSpawn' | 'hurry'> {
  /** Path of the executable, from `obtainParts`. */
  binary: string;
  /** Folder for the part's data; starting again on the same one goes on with what was there. */
  dir: string;
  /** Default `<dir>/<part>.log`. */
  logFile?: string;
}

export interface Etcd extends Child {
  url: string;
}

/** Starts etcd on 127.0.0.1; the port is a free one unless given. */
export async function startEtcd(options: PartOptions & { port?: number }): Promise<Etcd> {
  const { binary, dir, recordDir, signal, onSpawn, hurry } = options;
  const url = `http://${loopback}:${options.port ?? (await randomPort())}`;
  const child = await startChild({
    name: 'etcd',
    command: binary,
    args: [
      `--data-dir=${join(dir, 'data')}`,
      `--listen-client-urls=${url}`,
      `--advertise-client-urls=${url}`,
      // One member has no peers; any port will do.
      `--listen-peer-urls=http://${loopback}:0`,
      '--log-level=warn',
      // The sandbox survives kill -9 of etcd (the kernel keeps what was written), not a loss of power.
      '--unsafe-no-fsync',
    ],
    logFile: options.logFile ?? join(dir, 'etcd.log'),
    ready: async (abort) => (await httpGet(`${url}/health`, { signal: abort })).status === 200,
    recordDir,
    signal,
    onSpawn,
    hurry,
  });
  return { ...child, url };
}
