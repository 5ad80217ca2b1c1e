export { type GcpConfig, gcpConfig } from './config.ts';
export { createGcpProvider, type GcpProviderDeps } from './provider.ts';
