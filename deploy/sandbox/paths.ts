import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** The root of the checkout, whatever the current directory is. */
export const projectRoot = resolve(import.meta.dirname, '../..');

/** Where a sandbox keeps everything that it writes. */
export interface SandboxPaths {
  /** The state folder itself, absolute. */
  dir: string;
  /** True for `.sandbox` in the checkout, false when SANDBOX_DIR chose another. */
  isDefault: boolean;
  /** Held by the one `npm start` that runs here. */
  lock: string;
  kubeconfig: string;
  envFile: string;
  /** The providers file that we generate. */
  providers: string;
  leaseDb: string;
  /** State of the `host` provider: one folder per Squid. */
  hostState: string;
  temporalDb: string;
  /** Ports and addresses of the last start, preferred by the next. */
  addresses: string;
  /** State folders of the `host` providers that ran here. */
  squidFolders: string;
  /** One record per child, so that the next start finds what a killed one left behind. */
  run: string;
  logs: string;
}

export function sandboxPaths(env: NodeJS.ProcessEnv = process.env): SandboxPaths {
  const ownDefault = join(projectRoot, '.sandbox');
  // npm changes to the project's root; a relative SANDBOX_DIR means the caller's directory.
  const dir = env.SANDBOX_DIR ? resolve(env.INIT_CWD ?? '.', env.SANDBOX_DIR) : ownDefault;
  return {
    dir,
    isDefault: dir === ownDefault,
    lock: join(dir, 'lock.json'),
    kubeconfig: join(dir, 'kubeconfig'),
    envFile: join(dir, 'env'),
    providers: join(dir, 'providers.yaml'),
    leaseDb: join(dir, 'leases.db'),
    hostState: join(dir, 'host'),
    temporalDb: join(dir, 'temporal.db'),
    addresses: join(dir, 'addresses.json'),
    squidFolders: join(dir, 'squid-folders.json'),
    run: join(dir, 'run'),
    logs: join(dir, 'logs'),
  };
}

/** Where binaries are kept between clones and after `npm run clean`. */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  const base = env.EGRESS_PROXY_CACHE || env.XDG_CACHE_HOME || join(homedir(), '.cache');
  return join(resolve(base), 'egress-proxy-orchestrator');
}
