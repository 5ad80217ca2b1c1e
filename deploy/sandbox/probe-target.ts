import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { keepCertificate } from './certificates.ts';
import type { PartOptions } from './etcd.ts';
import { httpGet } from './http-get.ts';
import { randomPort } from './ports.ts';
import { type Child, startChild } from './processes.ts';

export interface ProbeTargetAddress {
  host: string;
  httpPort: number;
  httpsPort: number;
}

export interface ProbeTarget extends Child {
  /** http://host:port/ */
  http: string;
  /** https://host:port/ */
  https: string;
  /** Path of the certificate authority of `https`, PEM. */
  ca: string;
}

/** Starts the server that probes ask for, on 127.80.0.1 and free ports unless given. Its CA in `dir` is kept. */
export async function startProbeTarget(
  options: Omit<PartOptions, 'binary'> & { name?: string; address?: ProbeTargetAddress },
): Promise<ProbeTarget> {
  const { dir, recordDir, signal, onSpawn, hurry } = options;
  const { host, httpPort, httpsPort } = options.address ?? (await freeAddress('127.80.0.1'));
  const certificate = await keepCertificate(dir, {
    ca: 'egress proxy sandbox: probe target',
    names: ['localhost'],
    ips: [host],
  });
  const [http, https] = [`http://${host}:${httpPort}/`, `https://${host}:${httpsPort}/`];
  const ca = readFileSync(certificate.ca, 'utf8');
  const child = await startChild({
    name: options.name ?? 'probe-target',
    command: process.execPath,
    args: [
      join(import.meta.dirname, 'probe-target-server.ts'),
      `--host=${host}`,
      `--http-port=${httpPort}`,
      `--https-port=${httpsPort}`,
      `--cert=${certificate.cert}`,
      `--key=${certificate.key}`,
    ],
    logFile: options.logFile ?? join(dir, 'probe-target.log'),
    ready: async (abort) => {
      const answers = await Promise.all([httpGet(http, { signal: abort }), httpGet(https, { ca, signal: abort })]);
      return answers.every(({ status }) => status === 200);
    },
    recordDir,
    signal,
    onSpawn,
    hurry,
  });
  return { ...child, http, https, ca: certificate.ca };
}

async function freeAddress(host: string): Promise<ProbeTargetAddress> {
  return { host, httpPort: await randomPort(host), httpsPort: await randomPort(host) };
}
