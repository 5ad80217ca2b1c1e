export { type HostConfig, hostConfig } from './config.ts';
export type { HostLogger } from './logger.ts';
export { createHostProvider, type HostProviderDeps } from './provider.ts';
