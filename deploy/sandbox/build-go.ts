import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findExecutable, pathFolders } from './executables.ts';
import { runCommand } from './run-command.ts';

/** A program built from a public Go module by a small module of ours, whose go.sum checks every byte of source. */
export interface GoRecipe {
  /** Folder with go.mod and go.sum. */
  module: string;
  /** Import path of the main package. */
  package: string;
  executable: string;
  version: string;
  ldflags: string;
}

/** What must be installed by hand before anything can be built, or nothing. */
export async function missingForGo(): Promise<string | undefined> {
  const otherwise = 'or set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver';
  const go = goCommand();
  if (!go) return `go is not on PATH, nor in /usr/local/go/bin. Install Go 1.26 or newer, ${otherwise}`;
  const version = await runCommand(go, ['version'], { what: 'go version' });
  // Since 1.21, go fetches the toolchain that a go.mod asks for.
  const minor = Number(/go1\.(\d+)/.exec(version)?.[1] ?? Number.POSITIVE_INFINITY);
  return minor < 21 ? `${go} is too old (${version}). Install Go 1.26 or newer, ${otherwise}` : undefined;
}

/** Changes whenever the sources do. */
export function goSumHash(recipe: GoRecipe): string {
  return createHash('sha256')
    .update(readFileSync(join(recipe.module, 'go.sum')))
    .digest('hex')
    .slice(0, 12);
}

export async function buildGo(
  recipe: GoRecipe,
  folder: string,
  options: { signal?: AbortSignal | undefined; note: (text: string) => void },
): Promise<void> {
  let compiled = 0;
  const output = join(folder, recipe.executable);
  // -mod=readonly: a build never changes the recipe. -v names each package as it is compiled, which is our progress.
  const args = ['build', '-v', '-mod=readonly', '-trimpath', '-ldflags', recipe.ldflags, '-o', output, recipe.package];
  await runCommand(goCommand() ?? 'go', args, {
    what: `building ${recipe.executable} ${recipe.version}`,
    cwd: recipe.module,
    // Neither a workspace nor flags of the user's may change what is built.
    env: { ...process.env, GOWORK: 'off', GOFLAGS: '' },
    signal: options.signal,
    onLine: (line) => {
      if (line.startsWith('go: downloading')) options.note('downloading modules');
      else options.note(`${++compiled} packages compiled`);
    },
  });
}

function goCommand(): string | undefined {
  return findExecutable('go', [...pathFolders(), '/usr/local/go/bin']);
}
