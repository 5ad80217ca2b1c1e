import { readFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { type ProviderConfig, parseProviders } from '../../activities/providers/registry.ts';
import type { Addresses } from './addresses.ts';
import type { NodeLayout } from './node/layout.ts';
import type { SandboxPaths } from './paths.ts';
import { replaceFile } from './write-file.ts';

/**
 * Writes the providers file of the sandbox: one `host` provider whose Squids may reach loopback, with a node also one
 * whose pods may reach the host's end of their link; and neither of them anything else.
 */
export function writeProvidersFile(paths: SandboxPaths, addresses: Addresses, node?: NodeLayout): void {
  const { probeTarget, proxyRange } = addresses;
  const targetPorts = { httpPorts: [80, probeTarget.httpPort], connectPorts: [443, probeTarget.httpsPort] };
  const local = {
    name: 'local',
    type: 'host',
    stateDir: paths.hostState,
    addresses: proxyRange,
    clients: ['127.0.0.0/8'],
    allowedNetworks: ['127.0.0.0/8'],
    ...targetPorts,
  };
  const pods = node && {
    name: 'pods',
    type: 'kubernetes',
    namespace: 'default',
    kubeconfig: paths.kubeconfig,
    clients: [node.hostAddress],
    allowedNetworks: [node.hostAddress],
    ...targetPorts,
  };
  const head = '# Written anew at each `npm start`. For a file of your own: npm start -- --providers-config FILE\n';
  replaceFile(paths.providers, head + stringify({ providers: pods ? [local, pods] : [local] }));
}

/** The state folders of the file's `host` providers, so that their Squids can be stopped with the sandbox. */
export const hostStateFolders = (file: string): string[] =>
  readProviders(file).flatMap((provider) => (provider.type === 'host' ? [provider.stateDir] : []));

/** What a Proxy may call its provider. */
export const providerNames = (file: string): string[] => readProviders(file).map(({ name }) => name);

/** None of a file that is not valid: what is wrong with it is for the orchestrator to say. */
function readProviders(file: string): ProviderConfig[] {
  try {
    return parseProviders(readFileSync(file, 'utf8'), file);
  } catch {
    return [];
  }
}
