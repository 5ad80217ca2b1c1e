import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApiServer, startApiServer } from '../../../deploy/sandbox/api-server.ts';
import { applyCrds } from '../../../deploy/sandbox/crds.ts';
import { type Etcd, startEtcd } from '../../../deploy/sandbox/etcd.ts';
import { obtainParts } from '../../../deploy/sandbox/parts.ts';
import { randomPort } from '../../../deploy/sandbox/ports.ts';
import { startProxyCache } from '../../../watcher/proxy-cache.ts';
import { eventually, IMPATIENT, kubeConfigFrom, startWatchedFleet } from './watched-fleet.ts';

/** An API server of its own: the one of the other suites must not be killed. */
describe('a killed API server that starts again on the same data', () => {
  const stack = new AsyncDisposableStack();
  let etcd: Etcd;
  let server: ApiServer;
  let startServer: () => Promise<ApiServer>;
  let startStore: () => Promise<Etcd>;

  beforeAll(async () => {
    const parts = await obtainParts({ only: ['etcd', 'kube-apiserver', 'kubectl'] });
    const dir = mkdtempSync(join(tmpdir(), 'egress-proxy-restart-'));
    stack.defer(() => rmSync(dir, { recursive: true, force: true }));
    const [etcdPort, port] = [await randomPort(), await randomPort()];
    startStore = () => startEtcd({ binary: parts.etcd, dir: join(dir, 'etcd'), port: etcdPort });
    startServer = () =>
      startApiServer({ binary: parts['kube-apiserver'], dir: join(dir, 'api'), etcdUrl: etcd.url, port });
    etcd = await startStore();
    stack.defer(() => etcd.stop());
    server = await startServer();
    stack.defer(() => server.stop());
    await applyCrds(server.kubeconfig, { kubectl: parts.kubectl });
  });

  afterAll(() => stack.disposeAsync());

  const kill = async (part: ApiServer | Etcd) => {
    part.kill('SIGKILL');
    await part.exited;
  };

  it('is watched again, and what happened before anyone watched is known', async () => {
    await using fleet = await startWatchedFleet(server.kubeconfig);
    const deleted = await fleet.create('deleted');
    await fleet.create('edited');
    // One through the gate, whose changes are heard, and one that meets the server itself.
    const cache = await fleet.watch(IMPATIENT);
    const { namespace, warn } = fleet;
    await using straight = disposable(
      startProxyCache({ ...IMPATIENT, kubeConfig: kubeConfigFrom(server.kubeconfig), namespace, warn }),
    );
    await fleet.converged(cache);

    // Lists stay blocked until the changes are made, so that no watch can tell of them.
    fleet.gate.answer({ kind: 'list' }, 500);
    await kill(server);
    await eventually(() => expect(fleet.warnings.length).toBeGreaterThan(1));
    server = await startServer();
    await fleet.edit('edited', { edit: 'after the restart' });
    await fleet.remove('deleted');
    await fleet.gate.pass();

    await fleet.converged(cache);
    await fleet.converged(straight.part);
    expect(fleet.heard).toContain(`removed deleted ${deleted.metadata.uid}`);
  });

  it('is watched again when its store was killed too', async () => {
    await using fleet = await startWatchedFleet(server.kubeconfig);
    await fleet.create('edited');
    const cache = await fleet.watch(IMPATIENT);
    await fleet.converged(cache);
    await Promise.all([kill(server), kill(etcd)]);
    etcd = await startStore();
    server = await startServer();
    await fleet.edit('edited', { edit: 'after the restart' });
    await fleet.converged(cache);
  });
});

const disposable = <T extends { stop(): Promise<void> }>(part: T) => ({
  part,
  [Symbol.asyncDispose]: () => part.stop(),
});
