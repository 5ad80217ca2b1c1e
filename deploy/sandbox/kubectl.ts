import { dirname, join } from 'node:path';
import { runCommand } from './run-command.ts';

/** Runs kubectl on the sandbox's API server and returns what it printed; `what` is for messages. */
export type Kubectl = (args: string[], what: string, signal?: AbortSignal) => Promise<string>;

export function createKubectl(kubectl: string, kubeconfig: string): Kubectl {
  // kubectl would keep its discovery cache in the user's home, and take settings from there.
  const common = [`--kubeconfig=${kubeconfig}`, `--cache-dir=${join(dirname(kubeconfig), 'kubectl-cache')}`];
  const env = { ...process.env, KUBERC: 'off' };
  return (args, what, signal) => runCommand(kubectl, [...common, ...args], { what, signal, env });
}
