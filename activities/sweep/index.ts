import { cancellationSignal } from '@temporalio/activity';
import { whileAlive } from '../heartbeats.ts';
import type { Provider } from '../providers/contract.ts';
import { type SweepDeps, type SweepReport, type SweepRequest, sweepProvider } from './sweep.ts';

export type { SweepReport, SweepRequest, SweepSettings } from './sweep.ts';

/** The sweep as an activity, on the task queue of the provider that it sweeps. */
export const createSweep = (deps: SweepDeps & { provider(name: string): Provider }) => ({
  sweepProvider: (request: SweepRequest): Promise<SweepReport> =>
    whileAlive(sweepProvider(request, deps.provider(request.provider), deps, cancellationSignal())),
});
