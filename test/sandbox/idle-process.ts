import { spawn } from 'node:child_process';
import { identify, type ProcessIdentity } from '../../deploy/sandbox/process-identity.ts';

/** A process that does nothing for a minute, with these arguments on its command line. */
export function idleProcess(...args: string[]): ProcessIdentity {
  const { pid = -1 } = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)', '--', ...args], {
    stdio: 'ignore',
  });
  const identity = identify(pid);
  if (!identity) throw new Error('the process did not start');
  return identity;
}
