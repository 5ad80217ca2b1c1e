import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { freePort, orchestratorEnv, runOrchestrator } from './orchestrator.ts';
import { processesThatMention } from './processes.ts';
import { newSandboxFolder, removeSandboxFolder, startSandbox } from './sandbox.ts';
import { sandboxOfThisFile } from './world.ts';

const world = sandboxOfThisFile('start', { script: 'test/e2e/sandbox-without-orchestrator.ts' });

/** What a person may get wrong, and where. */
interface Wrong {
  /** In a folder of this suite's own. */
  files: string;
  /** An address at which someone else listens. */
  taken: string;
  /** An address at which nobody does. */
  silent: string;
  /** The API server's. */
  server: string;
  /** A kubeconfig like that of the sandbox, with one part of it replaced. */
  kubeconfig(name: string, replace: RegExp, by: string): string;
  /** A file of that content. */
  file(name: string, content: string): string;
}

let wrong: Wrong;
let stranger: Server;

beforeAll(async () => {
  const { sandbox, settings } = world();
  const files = join(sandbox.dir, 'wrong');
  mkdirSync(files);
  const file = (name: string, content: string) => {
    writeFileSync(join(files, name), content);
    return join(files, name);
  };
  const good = readFileSync(settings.KUBECONFIG, 'utf8');
  const port = await freePort();
  stranger = createServer().listen(port, '127.0.0.1');
  wrong = {
    files,
    taken: `127.0.0.1:${port}`,
    silent: `127.0.0.1:${await freePort()}`,
    server: /server: (\S+)/.exec(good)?.[1] ?? '',
    kubeconfig: (name, replace, by) => file(name, good.replace(replace, by)),
    file,
  };
});

afterAll(() => {
  stranger?.close();
});

/** Runs it until it ends by itself; `left` is what still runs then. */
async function failedStart(env: Record<string, string>, args: string[] = []) {
  const mark = randomUUID();
  const run = runOrchestrator(args, { ...(await orchestratorEnv(world().sandbox)), ...env, E2E_MARK: mark });
  return { code: await run.exited, said: run.output().trimEnd(), left: processesThatMention(mark) };
}

interface BadStart {
  mistake: string;
  env?(): Record<string, string>;
  args?: string[];
  /** What the message must name. */
  names(): string[];
}

const BAD_STARTS: BadStart[] = [
  {
    mistake: 'a providers file that is not there',
    env: () => ({ PROVIDERS_CONFIG: join(wrong.files, 'absent.yaml') }),
    names: () => [join(wrong.files, 'absent.yaml'), '--providers-config'],
  },
  {
    mistake: 'a providers file that is not YAML',
    env: () => ({ PROVIDERS_CONFIG: wrong.file('broken.yaml', 'providers: [{name: a\n') }),
    names: () => [join(wrong.files, 'broken.yaml')],
  },
  {
    mistake: 'several mistakes in a providers file, an unknown type among them',
    env: () => ({
      PROVIDERS_CONFIG: wrong.file('mistakes.yaml', '- {name: moon, type: rocket}\n- {name: local, type: host}\n'),
    }),
    names: () => [
      join(wrong.files, 'mistakes.yaml'),
      'providers[0] ("moon").type: unknown type "rocket"; known types:',
      'providers[1] ("local").stateDir',
      'providers[1] ("local").addresses',
    ],
  },
  {
    mistake: 'a taken port of the lease API',
    env: () => ({ LEASE_API_ADDRESS: wrong.taken }),
    names: () => [wrong.taken, '--lease-api-address'],
  },
  {
    mistake: 'a taken port of the metrics',
    env: () => ({ METRICS_ADDRESS: wrong.taken }),
    names: () => [wrong.taken, '--metrics-address'],
  },
  {
    mistake: 'a Temporal that is not there',
    env: () => ({ TEMPORAL_ADDRESS: wrong.silent }),
    names: () => ['Temporal', wrong.silent],
  },
  {
    mistake: 'a kubeconfig that is not there',
    env: () => ({ KUBECONFIG: join(wrong.files, 'no-kubeconfig') }),
    names: () => [join(wrong.files, 'no-kubeconfig')],
  },
  {
    mistake: 'a Kubernetes API that is not there',
    env: () => ({ KUBECONFIG: wrong.kubeconfig('unreachable', /server: \S+/, `server: https://${wrong.silent}`) }),
    names: () => ['Kubernetes', `https://${wrong.silent}`],
  },
  {
    mistake: 'a token that Kubernetes does not accept',
    env: () => ({ KUBECONFIG: wrong.kubeconfig('refused', /token: \S+/, 'token: stale') }),
    names: () => ['Kubernetes', wrong.server, '401'],
  },
  {
    mistake: 'a discovery token that no header can carry',
    env: () => ({ DISCOVERY_TOKEN: 'two words' }),
    names: () => ['DISCOVERY_TOKEN'],
  },
  { mistake: 'a flag that does not exist', args: ['--frobnicate'], names: () => ['--frobnicate', '--help'] },
  { mistake: 'a role that does not exist', args: ['--role', 'boss'], names: () => ['--role', 'watcher', 'boss'] },
];

test.concurrent.each(BAD_STARTS)(
  '$mistake: a message that names it, an exit code, nothing left running',
  async (start) => {
    const { code, said, left } = await failedStart(start.env?.() ?? {}, start.args);
    for (const name of start.names()) expect(said).toContain(name);
    // One message: at most one line and the way out, besides a list of mistakes; no stack, and no secret.
    expect(said.split('\n').filter((line) => !line.startsWith('  - ')).length).toBeLessThanOrEqual(2);
    expect(said).not.toMatch(/^\s+at /m);
    expect(said).not.toContain('two words');
    expect([1, 2]).toContain(code);
    expect(left).toEqual([]);
  },
);

describe('the command line', () => {
  test('--help tells every flag and its variable', async () => {
    const { code, said } = await failedStart({}, ['--help']);
    expect(code).toBe(0);
    for (const word of ['--providers-config', 'PROVIDERS_CONFIG', '--role', '--temporal-address', 'DISCOVERY_TOKEN'])
      expect(said).toContain(word);
  });

  test('--version tells that of the package', async () => {
    expect(await failedStart({}, ['--version'])).toEqual({ code: 0, said: packageJson.version, left: [] });
  });
});

describe('npm start', () => {
  test('refuses a state folder that another one uses, and names its process', async () => {
    const { dir } = world().sandbox;
    const { pid } = JSON.parse(readFileSync(join(dir, 'lock.json'), 'utf8')) as { pid: number };
    await expect(startSandbox(dir)).rejects.toThrow(new RegExp(`${dir}: process ${pid}\\. Stop it with: kill ${pid}`));
  });

  test('stops all of its parts when the orchestrator refuses the providers file', async () => {
    const dir = newSandboxFolder('refused');
    const providers = wrong.file('refused.yaml', '- {name: moon, type: rocket}\n');
    await expect(startSandbox(dir, { args: ['--providers-config', providers] })).rejects.toThrow(
      /ended with 1 before it was ready[\s\S]*refused\.yaml[\s\S]*unknown type "rocket"/,
    );
    expect(processesThatMention(dir)).toEqual([]);
    removeSandboxFolder(dir);
  });
});
