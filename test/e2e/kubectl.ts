import { execFile } from 'node:child_process';
import { obtainParts } from '../../deploy/sandbox/parts.ts';

/** Runs kubectl as a person would, on one cluster; answers what it prints, rejects with what it complains of. */
export type Kubectl = (args: string[], stdin?: string) => Promise<string>;

export async function createKubectl(kubeconfig: string): Promise<Kubectl> {
  const { kubectl } = await obtainParts({ only: ['kubectl'] });
  return (args, stdin = '') =>
    new Promise((resolve, reject) => {
      const child = execFile(
        kubectl,
        args,
        { env: { ...process.env, KUBECONFIG: kubeconfig } },
        (error, stdout, stderr) => {
          if (error) reject(new Error(`kubectl ${args.join(' ')}: ${stderr || error.message}`));
          else resolve(stdout);
        },
      );
      child.stdin?.end(stdin);
    });
}
