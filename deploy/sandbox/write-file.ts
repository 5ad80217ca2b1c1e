import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Replaces a file in one step, so that a script that reads it meanwhile sees the old or the new, never half. */
export function replaceFile(file: string, content: string, mode = 0o644): void {
  mkdirSync(dirname(file), { recursive: true });
  const aside = `${file}.${process.pid}.tmp`;
  writeFileSync(aside, content, { mode });
  renameSync(aside, file);
}
