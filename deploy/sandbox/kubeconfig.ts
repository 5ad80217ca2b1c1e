import { stringify } from 'yaml';
import { replaceFile } from './write-file.ts';

const name = 'egress-proxy-sandbox';

/** Writes a kubeconfig of its own for the sandbox; the user's is never read or changed. */
export function writeKubeconfig(file: string, access: { server: string; ca: string; token: string }): void {
  const cluster = {
    server: access.server,
    'certificate-authority-data': Buffer.from(access.ca).toString('base64'),
  };
  const content = stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster }],
    users: [{ name, user: { token: access.token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: 'default' } }],
  });
  replaceFile(file, content, 0o600);
}
