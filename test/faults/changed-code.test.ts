import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, vi } from 'vitest';
import type { ManagedSpec } from '../../model/proxy.ts';
import { createScriptedProvider } from '../integration/scripted-provider.ts';
import type { System, SystemOptions } from '../integration/system.ts';
import { systemsOfThisFile } from '../integration/systems.ts';
import { type RealServers, startRealServers } from '../setup/real-servers.ts';
import { faultTest } from './fault.ts';

const SPEC: ManagedSpec = { provider: 'scripted' };
const LONG_PATIENCE = { timeout: 240_000, interval: 200 };
const PATIENCE = { timeout: 60_000, interval: 100 };
const DEPLOYMENT = 'egress-proxies-test';

/** Of this suite's own: a task queue whose deployment has a current version takes no more unversioned workers. */
let servers: RealServers;
beforeAll(async () => {
  servers = await startRealServers();
});
afterAll(() => servers?.stop());

const systems = systemsOfThisFile();

const deploy = (options: SystemOptions): Promise<System> =>
  systems.start(servers, { watchResyncMillis: 1_000, ...options });

faultTest(
  { fault: 'deploy: workflow tasks fail by a bug', times: 1, checked: 'after the fix, the same run goes on' },
  async () => {
    const provider = createScriptedProvider();
    const bad = await deploy({
      provider,
      workflowsPath: fileURLToPath(new URL('broken-workflows.ts', import.meta.url)),
    });
    const { workflow } = await bad.apply('stuck', SPEC);
    const { runId } = await vi.waitFor(async () => {
      const description = await bad.client.workflow.getHandle(workflow).describe();
      expect(description.raw.pendingWorkflowTask?.attempt ?? 0).toBeGreaterThan(1);
      return description;
    }, PATIENCE);
    await systems.stop(bad);

    const good = await deploy({ provider });
    // The server tries failing workflow tasks ever less often: the longer the bug was out, the longer this takes.
    await vi.waitFor(async () => expect((await good.read('stuck')).status?.phase).toBe('Ready'), LONG_PATIENCE);
    expect((await good.client.workflow.getHandle(workflow).describe()).runId).toBe(runId);
    await good.remove('stuck');
    await good.gone('stuck');
  },
  300_000,
);

faultTest(
  { fault: 'deploy: a new deployment version', times: 1, checked: 'old runs move to it, new ones start on it' },
  async () => {
    const provider = createScriptedProvider();
    const makeCurrent = ({ client }: System, buildId: string) =>
      vi.waitFor(
        () =>
          client.workflowService.setWorkerDeploymentCurrentVersion({
            namespace: 'default',
            deploymentName: DEPLOYMENT,
            buildId,
            ignoreMissingTaskQueues: true,
          }),
        PATIENCE,
      );
    const versionOf = async ({ client }: System, workflow: string) => {
      const { raw } = await client.workflow.getHandle(workflow).describe();
      return raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId;
    };

    const first = await deploy({ provider, version: { deploymentName: DEPLOYMENT, buildId: 'one' } });
    await makeCurrent(first, 'one');
    const old = await first.apply('old', SPEC);
    await first.ready('old', 1);
    expect(await versionOf(first, old.workflow)).toBe('one');

    const second = await deploy({ provider, version: { deploymentName: DEPLOYMENT, buildId: 'two' } });
    await makeCurrent(second, 'two');
    await systems.stop(first);
    await second.patch('old', { spec: { port: 3210 } });
    await second.ready('old', 2);
    expect(await versionOf(second, old.workflow)).toBe('two');
    const young = await second.apply('young', SPEC);
    await second.ready('young', 1);
    expect(await versionOf(second, young.workflow)).toBe('two');

    for (const name of ['old', 'young']) await second.remove(name);
    for (const name of ['old', 'young']) await second.gone(name);
  },
);
