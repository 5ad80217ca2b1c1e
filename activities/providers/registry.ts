import { parseDocument } from 'yaml';
import { z } from 'zod';
import type { Provider } from './contract.ts';
import { gcpConfig } from './gcp/config.ts';
import { hostConfig } from './host/config.ts';
import { kubernetesConfig } from './kubernetes/config.ts';

export interface ProviderLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Every provider type; what it does is in `createProvider`. */
const providerConfig = z.discriminatedUnion('type', [gcpConfig, hostConfig, kubernetesConfig]);

/** One configured provider instance; two of one type are normal. */
export type ProviderConfig = z.output<typeof providerConfig>;

/** A type's code is imported only where one is configured: some weigh more than all the rest of a worker. */
export async function createProvider(config: ProviderConfig, logger: ProviderLogger): Promise<Provider> {
  switch (config.type) {
    case 'gcp':
      return (await import('./gcp/index.ts')).createGcpProvider(config);
    case 'host':
      return (await import('./host/index.ts')).createHostProvider(config, { logger });
    case 'kubernetes':
      return (await import('./kubernetes/index.ts')).createKubernetesProvider(config);
  }
}

/** For a type whose instances are in zones: the one to be in where a placement names none. */
export function zonesOf(config: ProviderConfig): { defaultZone?: string } | undefined {
  if (config.type !== 'gcp') return undefined;
  const { zone } = config.defaults;
  return zone === undefined ? {} : { defaultZone: zone };
}

/** All that is wrong with a providers file, line by line. */
export class ProvidersFileError extends Error {
  override readonly name = 'ProvidersFileError';
}

/**
 * Reads a providers file: a YAML list of `{name, type, ...}`, at the top level or under `providers`.
 * @param path only for messages
 * @throws ProvidersFileError that names every mistake by its path, together
 */
export function parseProviders(text: string, path: string): ProviderConfig[] {
  const document = parseDocument(text);
  if (document.errors.length > 0)
    fail(
      path,
      document.errors.map(({ message }) => firstLine(message)),
    );
  const content: unknown = document.toJS();
  const entries = Array.isArray(content) ? content : (content as { providers?: unknown } | null)?.providers;
  if (!Array.isArray(entries)) fail(path, ['expected a list of providers, each with at least a name and a type']);

  const problems: string[] = [];
  const configs = entries.flatMap((entry: unknown, index) => {
    const { success, data, error } = providerConfig.safeParse(entry, { error: missing });
    if (success) return [data];
    problems.push(...error.issues.map((issue) => problemOf(issue, entry, index)));
    return [];
  });
  problems.push(...repeated(entries));
  if (problems.length > 0) fail(path, problems);
  return configs;
}

function fail(path: string, problems: string[]): never {
  throw new ProvidersFileError(
    `${path} is not a valid providers file:\n${problems.map((line) => `  - ${line}`).join('\n')}`,
  );
}

/** zod's own words for an absent member speak of types that nobody asked for. */
const missing = ({ input }: { input?: unknown }): string | undefined =>
  input === undefined ? 'is missing' : undefined;

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? text;

function problemOf({ path, message, code }: z.core.$ZodIssue, entry: unknown, index: number): string {
  const { name, type } = (entry ?? {}) as { name?: unknown; type?: unknown };
  const where = `providers[${index}]${typeof name === 'string' ? ` ("${name}")` : ''}`;
  if (code === 'invalid_union' && path.join() === 'type') {
    const known = providerConfig.options.map(({ shape }) => shape.type.value).join(', ');
    return `${where}.type: ${type === undefined ? 'missing' : `unknown type ${JSON.stringify(type)}`}; known types: ${known}`;
  }
  return `${[where, ...path].join('.')}: ${message}`;
}

function repeated(entries: unknown[]): string[] {
  const names = entries
    .map((entry) => (entry as { name?: unknown } | null)?.name)
    .filter((name) => typeof name === 'string');
  const twice = new Set(names.filter((name, index) => names.indexOf(name) !== index));
  return [...twice].map((name) => `the name "${name}" is used more than once`);
}
