import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { SandboxError } from './failure.ts';
import { createKubectl } from './kubectl.ts';
import { projectRoot } from './paths.ts';

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
  const kubectl = createKubectl(options.kubectl, kubeconfig);
  await kubectl(
    ['apply', '--server-side', '--force-conflicts', '--field-manager=egress-proxy-sandbox', '-f', folder],
    'applying the custom resource definitions',
    options.signal,
  );
  await kubectl(
    ['wait', '--for=condition=Established', '--timeout=30s', '-f', folder],
    'waiting for the custom resource definitions',
    options.signal,
  );
}
