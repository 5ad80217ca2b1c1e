import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, inject, it } from 'vitest';
import { type ApiServerGate, startApiServerGate } from '../api-server-gate.ts';
import { eventually } from './watched-fleet.ts';

/** Far less than any of the waits that it could be in has left: 10 s to 10 min. */
const PROMPT_MILLIS = 5_000;

interface Moment {
  name: string;
  /** Before the process starts. */
  prepare?(gate: ApiServerGate): unknown;
  /** Resolves when the process is where it shall be stopped. */
  reached(gate: ApiServerGate, lines: string[]): Promise<unknown>;
}

const inWatch = (gate: ApiServerGate) => eventually(() => expect(gate.count({ kind: 'watch' })).toBe(1));

const MOMENTS: Moment[] = [
  { name: 'in a watch', reached: inWatch },
  {
    name: 'in a list',
    prepare: (gate) => gate.delay({ kind: 'list' }, 20_000),
    reached: (gate) => eventually(() => expect(gate.count({ kind: 'list' })).toBe(1)),
  },
  {
    name: 'while a watch has no answer yet',
    prepare: (gate) => gate.delay({ kind: 'watch' }, 20_000),
    reached: inWatch,
  },
  {
    name: 'in a backoff',
    // As long a pause as there is.
    prepare: (gate) => gate.answer({}, 429, { retryAfterSeconds: 60 }),
    reached: (_, lines) => eventually(() => expect(lines.join('\n')).toContain('listing them again')),
  },
  {
    name: 'while it connects to a black hole',
    prepare: (gate) => gate.blackHole(),
    reached: (gate) => eventually(() => expect(gate.connections).toBe(1)),
  },
  {
    name: 'in a watch that has become half open',
    async reached(gate) {
      await inWatch(gate);
      gate.blackHole();
    },
  },
  {
    name: 'while the server refuses connections',
    prepare: (gate) => gate.refuse(),
    reached: (_, lines) => eventually(() => expect(lines.join('\n')).toContain('listing them again')),
  },
];

describe('stop settles at once and leaves neither a timer nor a socket', () => {
  it.concurrent.each(MOMENTS)('$name', async ({ prepare, reached }) => {
    await using stack = new AsyncDisposableStack();
    const gate = stack.adopt(await startApiServerGate(inject('kubeconfig')), (part) => part.stop());
    await prepare?.(gate);

    const script = join(import.meta.dirname, 'watching-process.ts');
    const child = spawn(process.execPath, [script, gate.kubeconfig], { stdio: ['ignore', 'pipe', 'inherit'] });
    stack.defer(() => void child.kill('SIGKILL'));
    const lines: string[] = [];
    createInterface(child.stdout).on('line', (line) => lines.push(line));
    const exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)));
    await eventually(() => expect(lines).toContain('started'));
    await reached(gate, lines);

    child.kill('SIGTERM');
    const late = new Promise((resolve) => setTimeout(resolve, PROMPT_MILLIS, 'still there').unref());
    expect(await Promise.race([exited, late])).toBe(0);
    expect(lines.at(-1)).toBe('stopped');
  });
});
