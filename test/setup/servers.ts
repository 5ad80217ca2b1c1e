import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startApiServer } from '../../deploy/sandbox/api-server.ts';
import { applyCrds } from '../../deploy/sandbox/crds.ts';
import { startEtcd } from '../../deploy/sandbox/etcd.ts';
import { obtainParts } from '../../deploy/sandbox/parts.ts';
import { startTemporal } from '../../deploy/sandbox/temporal.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Path of a kubeconfig whose API server knows our resources. */
    kubeconfig: string;
    /** host:port of a Temporal server that knows our search attributes. */
    temporalAddress: string;
  }
}

/** A real API server and a real Temporal server, on free ports, for the suites that need no more than these. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const parts = await obtainParts({ only: ['etcd', 'kube-apiserver', 'kubectl', 'temporal'] });
  const dir = mkdtempSync(join(tmpdir(), 'egress-proxy-servers-'));
  const stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
  try {
    const etcd = stack.adopt(await startEtcd({ binary: parts.etcd, dir: join(dir, 'etcd') }), (part) => part.stop());
    const [api, temporal] = await Promise.all([
      startApiServer({ binary: parts['kube-apiserver'], dir: join(dir, 'api'), etcdUrl: etcd.url }).then((part) =>
        stack.adopt(part, () => part.stop()),
      ),
      startTemporal({ binary: parts.temporal, dir: join(dir, 'temporal'), headless: true }).then((part) =>
        stack.adopt(part, () => part.stop()),
      ),
    ]);
    await applyCrds(api.kubeconfig, { kubectl: parts.kubectl });
    project.provide('kubeconfig', api.kubeconfig);
    project.provide('temporalAddress', temporal.address);
    return () => stack.disposeAsync();
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}
