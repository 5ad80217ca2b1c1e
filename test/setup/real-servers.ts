import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startApiServer } from '../../deploy/sandbox/api-server.ts';
import { applyCrds } from '../../deploy/sandbox/crds.ts';
import { startEtcd } from '../../deploy/sandbox/etcd.ts';
import { obtainParts } from '../../deploy/sandbox/parts.ts';
import type { Child } from '../../deploy/sandbox/processes.ts';
import { startTemporal } from '../../deploy/sandbox/temporal.ts';

export interface RealServers {
  /** Path of a kubeconfig whose API server knows our resources. */
  kubeconfig: string;
  /** host:port of a Temporal server that knows our search attributes. */
  temporalAddress: string;
  stop(): Promise<void>;
}

/** A real API server and a real Temporal server, on free ports, with their state in a temporary folder. */
export async function startRealServers(
  options: { temporalConfig?: Record<string, unknown> } = {},
): Promise<RealServers> {
  const parts = await obtainParts({ only: ['etcd', 'kube-apiserver', 'kubectl', 'temporal'] });
  const dir = mkdtempSync(join(tmpdir(), 'egress-proxy-servers-'));
  const stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
  const adopt = async <T extends Child>(starting: Promise<T>): Promise<T> => {
    const part = await starting;
    // They have sessions of their own: a run that is interrupted takes them along, too.
    const kill = () => part.kill('SIGKILL');
    process.once('exit', kill);
    return stack.adopt(part, async () => {
      process.off('exit', kill);
      await part.stop();
    });
  };
  try {
    const etcd = await adopt(startEtcd({ binary: parts.etcd, dir: join(dir, 'etcd') }));
    const temporalOptions = { headless: true, dynamicConfig: options.temporalConfig ?? {} };
    const started = await Promise.allSettled([
      adopt(startApiServer({ binary: parts['kube-apiserver'], dir: join(dir, 'api'), etcdUrl: etcd.url })),
      adopt(startTemporal({ binary: parts.temporal, dir: join(dir, 'temporal'), ...temporalOptions })),
    ]);
    const [api, temporal] = started.map((result) => {
      if (result.status === 'rejected') throw result.reason;
      return result.value;
    }) as [Awaited<ReturnType<typeof startApiServer>>, Awaited<ReturnType<typeof startTemporal>>];
    await applyCrds(api.kubeconfig, { kubectl: parts.kubectl });
    return { kubeconfig: api.kubeconfig, temporalAddress: temporal.address, stop: () => stack.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}
