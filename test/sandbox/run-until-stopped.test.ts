import { describe, expect, it } from 'vitest';
import { SandboxError } from '../../deploy/sandbox/failure.ts';
import { runUntilStopped } from '../../deploy/sandbox/start.ts';

const reason = new Error('stopped');
const stuck = new SandboxError('etcd does not end');
const stopped = AbortSignal.abort(reason);

function run(start: () => Promise<{ stop(): Promise<void> }>, ready = () => {}) {
  const said: string[] = [];
  const code = runUntilStopped({ start, ready, stop: stopped, say: (text) => said.push(text) });
  return { said, code };
}

describe('a sandbox that is asked to stop', () => {
  it('ends with 0 when it was up and all of it has ended', async () => {
    const { said, code } = run(async () => ({ stop: async () => {} }));
    expect(await code).toBe(0);
    expect(said).toEqual(['stopped']);
  });

  it('ends with 130 when it was not yet up', async () => {
    const { said, code } = run(() => Promise.reject(reason));
    expect(await code).toBe(130);
    expect(said).toEqual(['stopped before it was ready']);
  });

  it.each([
    ['when it was up', async () => ({ stop: () => Promise.reject(stuck) })],
    ['when it was not yet up', () => Promise.reject(new SuppressedError(stuck, reason))],
  ])('fails with what does not end, %s', async (_, start) => {
    const { said, code } = run(start);
    await expect(code).rejects.toThrow(expect.objectContaining({ errors: [stuck] }));
    expect(said).toEqual([]);
  });

  it('is stopped, too, when what follows its start fails', async () => {
    let up = true;
    const stop = async () => {
      up = false;
    };
    const { code } = run(
      async () => ({ stop }),
      () => {
        throw new Error('no room for a sample');
      },
    );
    await expect(code).rejects.toThrow(expect.objectContaining({ errors: [new Error('no room for a sample')] }));
    expect(up).toBe(false);
  });
});
