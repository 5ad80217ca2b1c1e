export { probes } from './probes.ts';
export { proxy } from './proxy.ts';
