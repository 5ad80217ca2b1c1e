import { replaceFile } from './write-file.ts';

/** `KEY=value` lines that both a shell's `source` and simple parsers read; quoted only where a shell needs it. */
export function formatEnv(settings: Readonly<Record<string, string | undefined>>): string {
  const lines = Object.entries(settings).flatMap(([key, value]) =>
    value === undefined
      ? []
      : [`${key}=${/^[\w./:@%+,=-]*$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`}`],
  );
  return `${lines.join('\n')}\n`;
}

/** Holds the API's token, so only the owner reads it. */
export function writeEnvFile(file: string, settings: Readonly<Record<string, string | undefined>>): void {
  replaceFile(file, formatEnv(settings), 0o600);
}
