import { readFileSync } from 'node:fs';
import type { Provider } from '../activities/providers/contract.ts';
import { type CountProviderCall, metered } from '../activities/providers/metered.ts';
import {
  createProvider,
  type ProviderConfig,
  type ProviderLogger,
  ProvidersFileError,
  parseProviders,
  zonesOf,
} from '../activities/providers/registry.ts';
import { ProviderError } from '../model/instance.ts';
import type { ObservedProvider } from '../model/observation.ts';
import { StartError } from './start-error.ts';

/** The providers file as this process uses it. */
export interface Providers {
  /** Every task queue that some provider is served on. */
  readonly queues: string[];
  /** By name, from the whole file: a workflow may call providers that other workers serve. */
  route(name: string): ObservedProvider;
  /** One that this process serves. */
  get(name: string): Provider;
  close(): Promise<void>;
}

export function readProvidersFile(path: string): ProviderConfig[] {
  try {
    return parseProviders(readFileSync(path, 'utf8'), path);
  } catch (error) {
    if (error instanceof ProvidersFileError) throw new StartError(error.message);
    throw new StartError(
      `Can't read the providers file ${path}: ${(error as Error).message}; name one with --providers-config`,
    );
  }
}

/** Makes the providers whose queue is `served`; the others are only routed to. */
export async function openProviders(
  configs: ProviderConfig[],
  mainQueue: string,
  served: (queue: string) => boolean,
  logger: ProviderLogger,
  count: CountProviderCall,
): Promise<Providers> {
  const queueOf = ({ taskQueue = mainQueue }: ProviderConfig) => taskQueue;
  const opened = new Map<string, Provider>();
  const close = async () => {
    await Promise.all([...opened.values()].map((provider) => provider.close()));
  };
  try {
    for (const config of configs) {
      if (!served(queueOf(config))) continue;
      opened.set(config.name, metered(config.name, await createProvider(config, logger), count));
    }
  } catch (error) {
    await close();
    throw new StartError(`A provider can't be started: ${(error as Error).message}`);
  }
  const known = configs.map(({ name }) => name);
  return {
    queues: [...new Set(configs.map(queueOf))],
    route(name) {
      const config = configs.find((candidate) => candidate.name === name);
      if (!config) return { name, configured: false, known };
      const zonal = zonesOf(config);
      return { name, configured: true, taskQueue: queueOf(config), ...(zonal && { zonal }) };
    },
    get(name) {
      const provider = opened.get(name);
      if (provider) return provider;
      throw new ProviderError(
        'Transient',
        `The worker that took this call does not serve provider "${name}"; its configuration is another one`,
      );
    },
    close,
  };
}
