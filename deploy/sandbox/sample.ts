import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot, type SandboxPaths } from './paths.ts';
import { replaceFile } from './write-file.ts';

/** The shipped samples, each with the probe target that it names. */
const shippedTargets = { local: 'https://127.80.0.1:18443/', pods: 'http://10.77.0.1:18080/' } as const;

/**
 * The sample to apply here: the shipped one, or, where the probe target is not at its usual address, a copy that names
 * this sandbox's. Returns its path, relative to the project's root when it is the shipped one.
 */
export function fittingSample(name: keyof typeof shippedTargets, { dir }: SandboxPaths, target: string): string {
  const shipped = `deploy/samples/${name}.yaml`;
  if (target === shippedTargets[name]) return shipped;
  const copy = join(dir, `${name}.yaml`);
  replaceFile(copy, readFileSync(join(projectRoot, shipped), 'utf8').replaceAll(shippedTargets[name], target));
  return copy;
}
