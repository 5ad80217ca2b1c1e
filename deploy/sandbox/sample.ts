import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot, type SandboxPaths } from './paths.ts';
import type { SandboxSettings } from './plan.ts';
import { providerNames } from './providers-file.ts';
import { replaceFile } from './write-file.ts';

/** The shipped samples, each named after its provider, and the probe targets in them. */
const shipped = {
  local: { names: 'https://127.80.0.1:18443/', target: 'PROBE_TARGET_HTTPS' },
  pods: { names: 'http://10.77.0.1:18080/', target: 'POD_PROBE_TARGET' },
} as const;

/**
 * The samples that can be applied here: those whose provider is in this providers file. Each is the shipped one, or,
 * where the probe target is not at its usual address, a copy that names this sandbox's. Paths are relative to the
 * project's root for the shipped ones.
 */
export function fittingSamples(
  { dir }: Pick<SandboxPaths, 'dir'>,
  settings: Pick<SandboxSettings, 'PROBE_TARGET_HTTPS' | 'POD_PROBE_TARGET'>,
  providersFile: string,
): string[] {
  const providers = providerNames(providersFile);
  return Object.entries(shipped).flatMap(([provider, { names, target }]) => {
    const actual = settings[target];
    if (!actual || !providers.includes(provider)) return [];
    const sample = `deploy/samples/${provider}.yaml`;
    if (actual === names) return [sample];
    const copy = join(dir, `${provider}.yaml`);
    replaceFile(copy, readFileSync(join(projectRoot, sample), 'utf8').replaceAll(names, actual));
    return [copy];
  });
}
