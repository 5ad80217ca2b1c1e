export { probes } from './probes.ts';
export { proxy } from './proxy.ts';
export { sweep, trimLeases } from './sweep.ts';
