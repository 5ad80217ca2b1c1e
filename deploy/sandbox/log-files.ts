import { closeSync, copyFileSync, existsSync, openSync, readSync, renameSync, statSync, truncateSync } from 'node:fs';

/** A log may grow to this before its content moves to `<file>.1`, so a part never fills the disk. */
const maxBytes = 32 * 1024 * 1024;
const checkEveryMs = 10_000;

/** Sets the last run's log aside as `<file>.1`. */
export function rotateLog(file: string): void {
  if (existsSync(file) && statSync(file).size > 0) renameSync(file, `${file}.1`);
}

/**
 * Keeps growing logs bounded until the returned function is called. The parts write with O_APPEND through descriptors
 * of their own, which is why the file is copied and truncated rather than renamed.
 */
export function boundLogs(files: () => string[]): () => void {
  const timer = setInterval(() => {
    for (const file of files().filter((name) => existsSync(name) && statSync(name).size > maxBytes)) {
      try {
        copyFileSync(file, `${file}.1`);
      } catch {
        // A full disk is the best reason to go on and truncate.
      }
      truncateSync(file);
    }
  }, checkEveryMs).unref();
  return () => clearInterval(timer);
}

/** The last lines of a log. */
export function lastLines(file: string, count = 15): string[] {
  if (!existsSync(file)) return [];
  const size = statSync(file).size;
  const wanted = Math.min(size, 16 * 1024);
  const buffer = Buffer.alloc(wanted);
  const descriptor = openSync(file, 'r');
  try {
    readSync(descriptor, buffer, 0, wanted, size - wanted);
  } finally {
    closeSync(descriptor);
  }
  return buffer.toString('utf8').trimEnd().split('\n').filter(Boolean).slice(-count);
}
