import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keepCertificate } from './certificates.ts';
import type { PartOptions } from './etcd.ts';
import { httpGet } from './http-get.ts';
import { writeKubeconfig } from './kubeconfig.ts';
import { loopback, randomPort } from './ports.ts';
import { type Child, startChild } from './processes.ts';

export interface ApiServer extends Child {
  url: string;
  /** Path of a kubeconfig with the administrator's token. */
  kubeconfig: string;
}

/**
 * Starts kube-apiserver on 127.0.0.1; the port is a free one unless given. Certificates, keys and the administrator's
 * token are made in `dir` the first time and kept. Ready means that the namespace `default` is there as well.
 */
export async function startApiServer(
  options: PartOptions & { etcdUrl: string; port?: number; kubeconfig?: string },
): Promise<ApiServer> {
  const { binary, dir, recordDir, signal, onSpawn, hurry } = options;
  const kubeconfig = options.kubeconfig ?? join(dir, 'kubeconfig');
  const port = options.port ?? (await randomPort());
  const url = `https://${loopback}:${port}`;
  mkdirSync(dir, { recursive: true });
  const certificate = await keepCertificate(dir, {
    ca: 'egress proxy sandbox: Kubernetes API',
    names: ['localhost', 'kubernetes.default.svc'],
    ips: [loopback],
  });
  const accountKeys = keepServiceAccountKeys(dir);
  const { token, file: tokens } = keepAdminToken(dir);
  const ca = readFileSync(certificate.ca, 'utf8');
  writeKubeconfig(kubeconfig, { server: url, ca, token });

  const answers = async (path: string, abort: AbortSignal) =>
    (await httpGet(`${url}${path}`, { ca, token, signal: abort })).status === 200;
  const child = await startChild({
    name: 'kube-apiserver',
    command: binary,
    args: [
      `--etcd-servers=${options.etcdUrl}`,
      `--bind-address=${loopback}`,
      `--advertise-address=${loopback}`,
      // There is no cluster network that could reach us, so we publish no endpoint of ours.
      '--endpoint-reconciler-type=none',
      `--secure-port=${port}`,
      `--tls-cert-file=${certificate.cert}`,
      `--tls-private-key-file=${certificate.key}`,
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-signing-key-file=${accountKeys.private}`,
      `--service-account-key-file=${accountKeys.public}`,
      `--token-auth-file=${tokens}`,
      '--authorization-mode=RBAC',
      // Nothing here makes the service accounts that this plugin would demand of every pod.
      '--disable-admission-plugins=ServiceAccount',
      '--allow-privileged=true',
      '--service-cluster-ip-range=10.96.0.0/16',
    ],
    logFile: options.logFile ?? join(dir, 'kube-apiserver.log'),
    ready: async (abort) => (await answers('/readyz', abort)) && (await answers('/api/v1/namespaces/default', abort)),
    recordDir,
    signal,
    onSpawn,
    hurry,
  });
  return { ...child, url, kubeconfig };
}

function keepServiceAccountKeys(dir: string): { private: string; public: string } {
  const files = { private: join(dir, 'service-account.key'), public: join(dir, 'service-account.pub') };
  if (!existsSync(files.private) || !existsSync(files.public)) {
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    writeFileSync(files.public, pair.publicKey.export({ type: 'spki', format: 'pem' }));
    writeFileSync(files.private, pair.privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  }
  return files;
}

/** kube-apiserver's static token file: token, user, uid, groups. */
function keepAdminToken(dir: string): { token: string; file: string } {
  const file = join(dir, 'tokens.csv');
  if (!existsSync(file)) {
    const token = randomBytes(24).toString('hex');
    writeFileSync(file, `${token},sandbox-admin,sandbox-admin,"system:masters"\n`, { mode: 0o600 });
  }
  return { token: readFileSync(file, 'utf8').split(',')[0] ?? '', file };
}
