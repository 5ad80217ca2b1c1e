import { type Address, type Instance, type NetworkInterface, regionOf, urlOf } from './resources.ts';

export interface Machine {
  zone: string;
  resource: Instance;
  /** Milliseconds since the epoch, from which instances.get, and lists, show it. */
  visibleAt: number;
  listedAt: number;
  /** A deletion is under way. */
  leaving: boolean;
}

export type NewInstance = Partial<Instance> & { name: string };

/** The project's VMs and reserved addresses; what is in them, not how they come about. */
export interface Machines {
  add(zone: string, body: NewInstance, visibleMillis: number, listLagMillis: number): Machine;
  /** Out of existence; lists go on showing it for a while. */
  remove(machine: Machine, listLagMillis: number): void;
  at(zone: string, name: string): Machine | undefined;
  /** What lists show, by zone and name. */
  listed(): Machine[];
  all(): Machine[];
  /** Gives the VM its natIP: the one it asked for, or one of its own. */
  connect(machine: Machine, natPrefix: string): void;
  reserve(region: string, name: string, address: string): void;
  addresses(region: string): Address[];
  /** Whether somebody else's VM has the address. */
  inUse(address: string): boolean;
}

export function createMachines(project: string, now: () => number): Machines {
  let machines: Machine[] = [];
  let ghosts: { machine: Machine; until: number }[] = [];
  const reserved: { region: string; name: string; address: string }[] = [];
  let count = 0;

  const natOf = ({ resource }: Machine) => resource.networkInterfaces[0]?.accessConfigs?.[0]?.natIP;
  const userOf = (address: string) => machines.find((machine) => natOf(machine) === address)?.resource.selfLink;

  return {
    add(zone, body, visibleMillis, listLagMillis) {
      count += 1;
      const link = urlOf(project, `zones/${zone}/instances/${body.name}`);
      const [first] = body.networkInterfaces ?? [];
      const network: NetworkInterface = { name: 'nic0', ...first, networkIP: `10.128.${count >> 8}.${count & 255}` };
      const resource: Instance = {
        machineType: '',
        labels: {},
        ...body,
        kind: 'compute#instance',
        id: String(5_000_000_000_000_000 + count),
        // As the real one does: a moment after the operation, and with an offset.
        creationTimestamp: new Date(now() - 7 * 3_600_000).toISOString().replace('Z', '-07:00'),
        status: 'PROVISIONING',
        zone: urlOf(project, `zones/${zone}`),
        selfLink: link,
        metadata: { kind: 'compute#metadata', items: body.metadata?.items ?? [] },
        networkInterfaces: [network],
      };
      const listedAt = now() + visibleMillis + listLagMillis;
      const machine = { zone, resource, visibleAt: now() + visibleMillis, listedAt, leaving: false };
      machines.push(machine);
      return machine;
    },
    remove(machine, listLagMillis) {
      machines = machines.filter((one) => one !== machine);
      ghosts = ghosts.filter(({ until }) => until > now());
      if (listLagMillis > 0 && machine.listedAt <= now()) ghosts.push({ machine, until: now() + listLagMillis });
    },
    at: (zone, name) => machines.find((machine) => machine.zone === zone && machine.resource.name === name),
    listed() {
      const shown = machines.filter(({ listedAt }) => listedAt <= now());
      const lingering = ghosts.filter(({ until }) => until > now()).map(({ machine }) => machine);
      const key = ({ zone, resource }: Machine) => `${zone}/${resource.name}`;
      return [...shown, ...lingering].sort((a, b) => (key(a) < key(b) ? -1 : 1));
    },
    all: () => [...machines],
    connect(machine, natPrefix) {
      const [access] = machine.resource.networkInterfaces[0]?.accessConfigs ?? [];
      if (!access) return;
      const number = Number(machine.resource.id) % 65_536;
      access.natIP ??= `${natPrefix}.${number >> 8}.${number & 255}`;
    },
    reserve: (region, name, address) => void reserved.push({ region, name, address }),
    addresses: (region) =>
      reserved
        .filter((one) => one.region === region)
        .map(({ name, address }) => {
          const user = userOf(address);
          const link = urlOf(project, `regions/${region}`);
          const use = user ? { status: 'IN_USE' as const, users: [user] } : { status: 'RESERVED' as const };
          return { kind: 'compute#address', name, address, region: link, ...use };
        }),
    inUse: (address) => userOf(address) !== undefined,
  };
}

export const sameRegion = (a: string, b: string): boolean => regionOf(a) === regionOf(b);
