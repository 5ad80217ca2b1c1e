import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The first executable of this name in the folders, as an absolute path. */
export function findExecutable(name: string, folders: string[]): string | undefined {
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/** The folders of PATH; relative entries are left out, since we run things from other directories. */
export function pathFolders(env: NodeJS.ProcessEnv = process.env): string[] {
  return (env.PATH ?? '').split(delimiter).filter((folder) => folder.startsWith('/'));
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
