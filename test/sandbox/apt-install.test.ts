import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { absentPackages, installWithApt } from '../../deploy/sandbox/apt-install.ts';
import { containerRuntime } from '../../deploy/sandbox/node/requirements.ts';

let dir: string;
let bin: string;
let cni: string;

/** A host without any of the programs, whose apt-get and systemctl only write down how they were called. */
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'sandbox-test-'));
  [bin, cni] = [join(dir, 'bin'), join(dir, 'cni')];
  const stubs = join(dir, 'stubs');
  for (const folder of [bin, cni, stubs]) mkdirSync(folder);
  const noteCall = `#!/bin/sh\necho "\${0##*/} $*, policy: $(test -e ${dir}/policy-rc.d && echo yes)" >>${dir}/calls\n`;
  for (const name of ['apt-get', 'systemctl']) writeFileSync(join(stubs, name), noteCall, { mode: 0o755 });
  vi.stubEnv('PATH', `${stubs}:${process.env.PATH}`);
  vi.stubEnv('EGRESS_PROXY_CACHE', dir);
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(dir, { recursive: true });
});

const put = (folder: string, ...programs: string[]) => {
  for (const name of programs) writeFileSync(join(folder, name), '', { mode: 0o755 });
};
const runtime = () => containerRuntime([bin], [cni]);
const calls = () => readFileSync(join(dir, 'calls'), 'utf8').trimEnd().split('\n');
const install = () => installWithApt(runtime(), () => {}, { policyFile: join(dir, 'policy-rc.d'), systemd: true });

describe('installing what runs containers', () => {
  it('on an empty host installs all of it, with a policy that starts nothing, and disables its service', async () => {
    await install();
    expect(calls()).toEqual([
      expect.stringMatching(/^apt-get update .*, policy: yes$/),
      expect.stringMatching(
        /^apt-get install -y .*--no-remove .* containerd runc containernetworking-plugins iproute2, policy: yes$/,
      ),
      'systemctl disable --now containerd, policy:',
    ]);
    expect(existsSync(join(dir, 'policy-rc.d'))).toBe(false);
  });

  it('on a host with Docker adds the CNI plugins only, removes no package, and leaves containerd in service', async () => {
    put(bin, 'containerd', 'ctr', 'containerd-shim-runc-v2', 'runc', 'ip');
    await install();
    expect(calls()).toEqual([
      expect.stringContaining('apt-get update'),
      expect.stringMatching(/^apt-get install .*--no-remove .*=120 containernetworking-plugins, /),
    ]);
  });

  it('leaves a service alone whose program was there, though its package lacks another', async () => {
    put(bin, 'containerd', 'runc', 'ip');
    put(cni, 'bridge', 'host-local', 'loopback');
    expect(absentPackages(runtime()).map(({ name }) => name)).toEqual(['containerd']);
    await install();
    expect(calls().filter((call) => call.startsWith('systemctl'))).toEqual([]);
  });

  it('calls nothing where all of it is there', async () => {
    put(bin, 'containerd', 'ctr', 'containerd-shim-runc-v2', 'runc', 'ip');
    put(cni, 'bridge', 'host-local', 'loopback');
    await install();
    expect(existsSync(join(dir, 'calls'))).toBe(false);
  });

  it('is done by one run at a time, so that none takes away the policy of another', async () => {
    await Promise.all([install(), install()]);
    expect(calls().filter((call) => call.startsWith('apt-get') && !call.endsWith('policy: yes'))).toEqual([]);
  });
});
