import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import { expect, it, vi } from 'vitest';
import { startProxyCache } from '../../../watcher/proxy-cache.ts';
import { eventually, IMPATIENT, startWatchedFleet } from './watched-fleet.ts';

/** How long the client goes by what it read from a token file. */
const TOKEN_MILLIS = 60_000;

it('an expired token is a fault until its file has been renewed and the client has read it again', async () => {
  await using fleet = await startWatchedFleet();
  await using stack = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), 'token-'));
  stack.defer(() => rmSync(dir, { recursive: true }));
  const tokenFile = join(dir, 'token');
  writeFileSync(tokenFile, 'one-that-has-expired');

  // As in a pod, where the kubelet renews the service account's token.
  const kubeConfig = new KubeConfig();
  const cluster = fleet.kubeConfig.getCurrentCluster();
  if (!cluster) throw new Error('no cluster');
  kubeConfig.loadFromClusterAndUser(cluster, {
    name: 'pod',
    authProvider: { name: 'tokenFile', config: { tokenFile } },
  });
  const { namespace, warn } = fleet;
  const cache = stack.adopt(startProxyCache({ ...IMPATIENT, kubeConfig, namespace, warn }), (part) => part.stop());
  await eventually(() =>
    expect(fleet.warnings).toContainEqual(
      expect.objectContaining({ error: expect.objectContaining({ name: 'KubernetesError', code: 401 }) }),
    ),
  );
  expect(JSON.stringify(fleet.warnings)).not.toContain('one-that-has-expired');

  await fleet.create('meanwhile');
  writeFileSync(tokenFile, fleet.kubeConfig.getCurrentUser()?.token ?? '');
  stack.defer(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + TOKEN_MILLIS + 1_000 });
  await fleet.converged(cache);
});
