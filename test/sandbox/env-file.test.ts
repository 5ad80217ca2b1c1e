import { execFileSync } from 'node:child_process';
import { parseEnv } from 'node:util';
import { expect, it } from 'vitest';
import { formatEnv } from '../../deploy/sandbox/env-file.ts';

it('.sandbox/env has one KEY=value line per setting, without those that have none', () => {
  const settings = {
    TEMPORAL_ADDRESS: '127.0.0.1:7233',
    DISCOVERY_TOKEN: undefined,
    METRICS: 'http://127.0.0.1:8080/metrics',
  };
  expect(formatEnv(settings)).toBe('TEMPORAL_ADDRESS=127.0.0.1:7233\nMETRICS=http://127.0.0.1:8080/metrics\n');
});

it.each(['/home/a b/.sandbox/kubeconfig', 'to$HOME`ken', 'a;b&c|d', 'back\\slash'])(
  'reads the same in a shell and in Node: %s',
  (value) => {
    const text = formatEnv({ VALUE: value });
    expect(parseEnv(text).VALUE).toBe(value);
    expect(execFileSync('sh', ['-c', `${text}printf %s "$VALUE"`], { encoding: 'utf8' })).toBe(value);
  },
);
