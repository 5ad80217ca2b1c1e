import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot, type SandboxPaths } from './paths.ts';
import { replaceFile } from './write-file.ts';

const shipped = 'deploy/samples/local.yaml';
/** The https target that the shipped sample is probed through. */
const shippedTarget = 'https://127.80.0.1:18443/';

/**
 * The sample to apply here: the shipped one, or, where another sandbox has the usual address of the probe target, a copy
 * that names this one's. Returns its path, relative to the project's root when it is the shipped one.
 */
export function fittingSample({ sample }: SandboxPaths, httpsTarget: string): string {
  if (httpsTarget === shippedTarget) return shipped;
  replaceFile(sample, readFileSync(join(projectRoot, shipped), 'utf8').replaceAll(shippedTarget, httpsTarget));
  return sample;
}
