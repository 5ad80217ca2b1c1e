import { z } from 'zod';
import { ErrorAnswer } from './api-error.ts';
import { type Call, type Faults, faultRule } from './faults.ts';
import type { Machine } from './machines.ts';
import type { Project } from './project.ts';
import { type Settings, settingsSchema } from './settings.ts';

export interface AdminDeps {
  project: Project;
  faults: Faults;
  settings: Settings;
  /** Every call of the API, refused ones too. */
  calls: { at: number; call: Call }[];
  now: () => number;
}

const vm = z.strictObject({ zone: z.string(), name: z.string() });
const stranger = vm.extend({ labels: z.record(z.string(), z.string()).default({}) });
const reservation = z.strictObject({ region: z.string(), name: z.string(), address: z.ipv4() });

/**
 * What a test does to the world behind the API, or asks of it:
 * - `POST /admin/faults` a rule or a list of rules (faults.ts); `DELETE /admin/faults` ends all
 * - `POST /admin/settings` members to change (settings.ts)
 * - `POST /admin/preempt`, `POST /admin/vanish` `{zone, name}`: a Spot VM is taken back; a VM is removed by hand
 * - `POST /admin/strangers` `{zone, name, labels}`: a VM that somebody else made
 * - `POST /admin/addresses` `{region, name, address}`: a reserved address
 * - `GET /admin/state`: VMs, accepted inserts by name, calls by kind, calls of the last minute, faults by kind
 */
export function administer(method: string, path: string, body: unknown, deps: AdminDeps): object {
  const { project, faults, settings } = deps;
  project.timeline.settle();
  try {
    switch (`${method} ${path}`) {
      case 'POST /admin/faults':
        for (const rule of z.array(faultRule).parse(Array.isArray(body) ? body : [body])) faults.add(rule);
        return {};
      case 'DELETE /admin/faults':
        faults.clear();
        return {};
      case 'POST /admin/settings':
        Object.assign(settings, settingsSchema.parse({ ...settings, ...(body as object) }));
        return settings;
      case 'POST /admin/preempt':
        machineAt(project, body).resource.status = 'TERMINATED';
        return {};
      case 'POST /admin/vanish':
        project.machines.remove(machineAt(project, body), settings.listLagMillis);
        return {};
      case 'POST /admin/strangers': {
        const { zone, name, labels } = stranger.parse(body);
        project.machines.add(zone, { name, labels }, 0, 0).resource.status = 'RUNNING';
        return {};
      }
      case 'POST /admin/addresses': {
        const { region, name, address } = reservation.parse(body);
        project.machines.reserve(region, name, address);
        return {};
      }
      case 'GET /admin/state':
        return stateOf(deps);
    }
  } catch (error) {
    if (error instanceof z.ZodError) throw new ErrorAnswer(400, 'invalid', z.prettifyError(error));
    throw error;
  }
  throw new ErrorAnswer(404, 'notFound', `${method} ${path} is not an admin request`);
}

/** What `GET /admin/state` answers. */
export interface EngineState {
  instances: { zone: string; name: string; status: string; labels: Record<string, string> }[];
  inserts: Record<string, number>;
  calls: Record<string, number>;
  callsInLastMinute: number;
  faults: Record<string, number>;
}

function stateOf({ project, faults, calls, now }: AdminDeps): EngineState {
  const counts: Record<string, number> = {};
  for (const { call } of calls) counts[call] = (counts[call] ?? 0) + 1;
  return {
    instances: project.machines
      .all()
      .map(({ zone, resource: { name, status, labels } }) => ({ zone, name, status, labels })),
    inserts: Object.fromEntries(project.inserts),
    calls: counts,
    callsInLastMinute: calls.filter(({ at }) => now() - at < 60_000).length,
    faults: { ...faults.hits },
  };
}

function machineAt(project: Project, body: unknown): Machine {
  const { zone, name } = vm.parse(body);
  const machine = project.machines.at(zone, name);
  if (machine) return machine;
  throw new ErrorAnswer(404, 'notFound', `There is no VM ${name} in ${zone}`);
}
