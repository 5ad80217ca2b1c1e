import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SandboxError } from './failure.ts';
import { projectRoot } from './paths.ts';
import { runCommand } from './run-command.ts';

/**
 * Applies the custom resource definitions and waits until the API server serves them. As text through kubectl: the typed
 * client drops every `x-kubernetes-*` key, and with them the validation rules.
 */
export async function applyCrds(
  kubeconfig: string,
  options: { kubectl: string; folder?: string; signal?: AbortSignal | undefined },
): Promise<void> {
  const folder = options.folder ?? join(projectRoot, 'deploy/crds');
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
  if (files.length === 0) throw new SandboxError(`No custom resource definitions (*.yaml) in ${folder}.`);
  const kubectl = (args: string[], what: string) =>
    runCommand(
      options.kubectl,
      // kubectl would keep its discovery cache in the user's home.
      [`--kubeconfig=${kubeconfig}`, `--cache-dir=${join(dirname(kubeconfig), 'kubectl-cache')}`, ...args],
      { what, signal: options.signal, env: { ...process.env, KUBERC: 'off' } },
    );
  await kubectl(
    ['apply', '--server-side', '--force-conflicts', '--field-manager=egress-proxy-sandbox', '-f', folder],
    'applying the custom resource definitions',
  );
  await kubectl(
    ['wait', '--for=condition=Established', '--timeout=30s', '-f', folder],
    'waiting for the custom resource definitions',
  );
}
