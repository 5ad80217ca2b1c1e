import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readSettings, type Settings, SettingsError, settingsTable } from '../../worker/settings.ts';

const read = (args: string[], env: NodeJS.ProcessEnv = {}): Settings => readSettings(args, env) as Settings;

describe('readSettings', () => {
  it('takes flags over the environment, and that over the defaults', () => {
    expect(read([]).taskQueue).toBe('egress-proxies');
    expect(read([], { TASK_QUEUE: 'env' }).taskQueue).toBe('env');
    expect(read(['--task-queue', 'flag'], { TASK_QUEUE: 'env' }).taskQueue).toBe('flag');
  });

  it('reads durations, addresses, lists and URLs', () => {
    const settings = read(['--quota-retry', '90s', '--lease-api-address', '[::1]:9000', '--serve-queues', 'a, b']);
    expect(settings.quotaRetry).toBe(90_000);
    expect(settings.leaseApiAddress).toEqual({ hostname: '::1', port: 9000 });
    expect(settings.serveQueues).toEqual(['a', 'b']);
    expect(read(['--metrics-address', ':8080']).metricsAddress).toEqual({ hostname: '0.0.0.0', port: 8080 });
    expect(read([]).probeUrl).toBeUndefined();
  });

  it('answers --help and --version whatever else is wrong', () => {
    expect(readSettings(['--help'], { ROLE: 'nonsense' })).toBe('help');
    expect(readSettings(['-v'], {})).toBe('version');
  });

  it.each([
    [['--role', 'boss'], '--role: expected one of all, watcher, worker, api, got "boss"'],
    [['--probe-shards', '0'], '--probe-shards: expected a whole number from 1'],
    [['--quota-retry', '5'], '--quota-retry: expected a duration such as 500ms'],
    [['--quota-retry', '-5s'], 'ambiguous'],
    [['--quota-retry', '0s'], '--quota-retry: expected at least 1ms'],
    [['--watch-relist', '10ms'], '--watch-relist: expected at least 1s'],
    [['--lease-api-address', 'localhost'], '--lease-api-address: expected HOST:PORT'],
    [['--lease-api-address', ':70000'], '--lease-api-address: expected HOST:PORT'],
    [['--probe-url', 'ftp://x/'], '--probe-url: expected an http or https URL'],
    [['--no-such-flag'], "Unknown option '--no-such-flag'"],
    [['--discovery-token', 'x'], "Unknown option '--discovery-token'"],
    [['stray'], 'stray'],
  ])('refuses %j', (args, message) => {
    expect(() => readSettings(args, {})).toThrow(message);
  });

  it('names all mistakes together, by where they were made, and never repeats a secret', () => {
    const env = { ROLE: 'boss', PROBE_SHARDS: 'many', DISCOVERY_TOKEN: 'has a space' };
    try {
      readSettings([], env);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(SettingsError);
      const { message } = error as Error;
      expect(message.split('\n').map((line) => line.split(':')[0])).toEqual([
        'ROLE',
        'DISCOVERY_TOKEN',
        'PROBE_SHARDS',
      ]);
      expect(message).not.toContain('has a space');
    }
  });
});

it("the README's reference is the table of settings", () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  for (const { flag, env, fallback, help } of settingsTable()) {
    const row = `| ${flag ? `\`${flag}\`` : ''} | \`${env}\` | ${fallback ? `\`${fallback}\`` : ''} | ${help} |`;
    expect(readme).toContain(row);
  }
});
