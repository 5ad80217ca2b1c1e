import { ErrorAnswer, invalid, notFound, unknownZone } from './api-error.ts';
import { createMachines, type Machine, type Machines, type NewInstance, sameRegion } from './machines.ts';
import { createOperations, type OperationFailure, type Operations } from './operations.ts';
import { type Operation, regionOf, ZONES } from './resources.ts';
import type { Settings } from './settings.ts';
import { createTimeline, type Timeline } from './timeline.ts';
import { validateInstance } from './validate-instance.ts';

export interface ProjectDeps {
  /** Id of the one project that exists. */
  id: string;
  settings: Settings;
  now: () => number;
}

/** What becomes of the VMs of one project: the rules behind the calls. */
export interface Project {
  readonly id: string;
  readonly machines: Machines;
  readonly operations: Operations;
  readonly timeline: Timeline;
  /** Name of a VM → how many inserts of it were accepted. */
  readonly inserts: Map<string, number>;
  insert(zone: string, body: NewInstance, requestId: string | null, failure?: OperationFailure): Operation;
  get(zone: string, name: string): Machine;
  delete(zone: string, name: string, requestId: string | null, failure?: OperationFailure): Operation;
  /** @throws ErrorAnswer for a zone that there is not. */
  checkZone(zone: string): void;
}

export function createProject({ id, settings, now }: ProjectDeps): Project {
  const machines = createMachines(id, now);
  const operations = createOperations(id, now);
  const timeline = createTimeline(now);
  const inserts = new Map<string, number>();

  /** What is found out only while the VM is being made. */
  function shortage({ zone, resource }: Machine): OperationFailure | undefined {
    const { instanceQuota, stockouts } = settings;
    const used = machines.all().filter((one) => sameRegion(one.zone, zone)).length;
    if (instanceQuota !== null && used > instanceQuota) {
      const message = `Quota 'INSTANCES' exceeded.  Limit: ${instanceQuota}.0 in region ${regionOf(zone)}.`;
      return { code: 'QUOTA_EXCEEDED', message, status: 403 };
    }
    const code = stockouts[zone];
    if (code !== undefined) {
      const message = `The zone 'projects/${id}/zones/${zone}' does not have enough resources available for ${resource.name}.`;
      return { code, message, status: 503 };
    }
    return undefined;
  }

  function checkAddress({ zone }: { zone: string }, natIP: string | undefined): void {
    if (natIP === undefined) return;
    const field = 'resource.networkInterfaces[0].accessConfigs[0].natIP';
    const known = machines.addresses(regionOf(zone)).some(({ address }) => address === natIP);
    if (!known) throw invalid(field, natIP, 'The specified external IP address was not found.');
    if (machines.inUse(natIP)) {
      const message = `External IP address: ${natIP} is already in-use.`;
      throw new ErrorAnswer(400, 'resourceInUseByAnotherResource', message);
    }
  }

  function comeUp(machine: Machine): void {
    if (machine.leaving) return;
    machine.resource.status = 'RUNNING';
    if (settings.natMillis !== null)
      timeline.after(settings.natMillis, () => machines.connect(machine, settings.natPrefix));
  }

  const project: Project = {
    id,
    machines,
    operations,
    timeline,
    inserts,

    insert(zone, body, requestId, failure) {
      project.checkZone(zone);
      const repeated = operations.repeated(zone, requestId);
      if (repeated) return repeated;
      validateInstance(body as never, zone, requestId);
      const link = `projects/${id}/zones/${zone}/instances/${body.name}`;
      if (machines.at(zone, body.name)) {
        throw new ErrorAnswer(409, 'alreadyExists', `The resource '${link}' already exists`);
      }
      checkAddress({ zone }, body.networkInterfaces?.[0]?.accessConfigs?.[0]?.natIP);

      const machine = machines.add(zone, body, settings.visibleMillis, settings.listLagMillis);
      inserts.set(body.name, (inserts.get(body.name) ?? 0) + 1);
      const targetLink = machine.resource.selfLink;
      const operation = operations.start({
        zone,
        type: 'insert',
        targetLink,
        targetId: machine.resource.id,
        requestId,
      });
      const refused = failure ?? shortage(machine);
      timeline.after(settings.insertMillis / 2, () => {
        operations.run(operation);
        if (!machine.leaving) machine.resource.status = 'STAGING';
      });
      if (refused) {
        // The real one takes away what it could not finish, and for a moment that can be seen.
        timeline.after(settings.insertMillis * 0.75, () => {
          if (!machine.leaving) machine.resource.status = 'STOPPING';
        });
      }
      timeline.after(settings.insertMillis, () => {
        operations.end(operation, refused);
        if (refused) machines.remove(machine, 0);
        else comeUp(machine);
      });
      return operation;
    },

    get(zone, name) {
      project.checkZone(zone);
      const machine = machines.at(zone, name);
      if (machine && machine.visibleAt <= now()) return machine;
      throw notFound(`projects/${id}/zones/${zone}/instances/${name}`);
    },

    delete(zone, name, requestId, failure) {
      const machine = project.get(zone, name);
      if (machine.leaving) {
        const message = `The resource 'projects/${id}/zones/${zone}/instances/${name}' is not ready`;
        throw new ErrorAnswer(400, 'resourceNotReady', message);
      }
      const before = machine.resource.status;
      machine.leaving = true;
      machine.resource.status = 'STOPPING';
      const { selfLink: targetLink, id: targetId } = machine.resource;
      const operation = operations.start({ zone, type: 'delete', targetLink, targetId, requestId });
      operations.run(operation);
      timeline.after(settings.deleteMillis, () => {
        operations.end(operation, failure);
        if (!failure) return machines.remove(machine, settings.listLagMillis);
        machine.leaving = false;
        machine.resource.status = before;
      });
      return operation;
    },

    checkZone(zone) {
      if (!ZONES.includes(zone)) throw unknownZone(zone);
    },
  };
  return project;
}
