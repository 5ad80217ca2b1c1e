import { expect, it } from 'vitest';
import { SandboxError } from '../../deploy/sandbox/failure.ts';
import { parseStartArguments } from '../../deploy/sandbox/start.ts';

it('a providers file is taken from the directory where the person is', () => {
  expect(parseStartArguments(['--providers-config', 'addresses.test.ts'], import.meta.dirname)).toEqual({
    help: false,
    node: false,
    providersConfig: `${import.meta.dirname}/addresses.test.ts`,
  });
});

it('a node for pods comes only when it is asked for', () => {
  expect(parseStartArguments(['--node'], import.meta.dirname)).toMatchObject({ node: true });
});

it.each([
  ['an unknown option', ['--nope'], /Unknown option '--nope'.*--help/s],
  ['a stray word', ['local'], /Unexpected argument 'local'/],
  ['a file that is not there', ['--providers-config', 'nope.yaml'], /nope\.yaml does not exist/],
  ['a folder', ['--providers-config', '.'], /is not a file/],
  ['a missing value', ['--providers-config'], /argument missing/],
])('%s is refused with exit code 2', (_, argv, message) => {
  const parse = () => parseStartArguments(argv, import.meta.dirname);
  expect(parse).toThrow(message);
  expect(parse).toThrow(expect.objectContaining({ exitCode: 2, name: SandboxError.name }));
});
