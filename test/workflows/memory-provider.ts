import type { Provider } from '../../activities/providers/contract.ts';
import {
  type Instance,
  type InstanceRef,
  type InstanceState,
  ProviderError,
  type ProviderErrorClass,
} from '../../model/instance.ts';
import type { Clock } from './life.ts';

/** `lost`: the call does its work, and its answer never arrives. */
export type CallFault = Exclude<ProviderErrorClass, 'NotFound'> | 'lost';
export type Call = 'create' | 'get' | 'delete';

/** For so long after it was made, an instance is found only by who knows its zone. */
const LIST_LAG_MILLIS = 10_000;
/** For so long, a failed create is the answer to a look. */
const FAILURE_MILLIS = 60_000;

interface Machine {
  instance: Instance;
  /** Deletions that it takes to be gone. */
  leaving: number;
}

/**
 * A provider in memory, as treacherous as the contract allows: calls fail or lose their answers, deletions take their
 * time, and zones run out of machines, which a create learns at once or not before the next look.
 */
export class MemoryProvider implements Provider {
  /** By zone; a provider without zones has the one that is called ''. */
  readonly machines = new Map<string, Machine>();
  readonly faults: Record<Call, CallFault[]> = { create: [], get: [], delete: [] };
  readonly exhausted = new Map<string, 'at once' | 'later'>();
  made = 0;
  boots: InstanceState = 'Running';
  lingers = 0;

  /** Creates that were accepted and failed, by zone. */
  private readonly failures = new Map<string, { specHash: string; at: number }>();
  private readonly clock: Clock;
  private readonly zonal: boolean;

  constructor(clock: Clock, zonal: boolean) {
    this.clock = clock;
    this.zonal = zonal;
  }

  get instances(): Instance[] {
    return [...this.machines.values()].map(({ instance }) => instance);
  }

  /** Answers truthfully and at once from here on. */
  heal(): void {
    for (const faults of Object.values(this.faults)) faults.length = 0;
    this.exhausted.clear();
    this.boots = 'Running';
    this.lingers = 0;
    for (const instance of this.instances) if (instance.state === 'Provisioning') instance.state = 'Running';
  }

  create: Provider['create'] = ({ name, uid, placement, specHash, mayExist }) =>
    this.call('create', () => {
      const zone = this.zoneOf({ placement });
      const known = this.machines.get(zone) ?? (mayExist ? this.anywhere() : undefined);
      if (known) return { ...known.instance };
      const shortage = this.exhausted.get(zone);
      if (shortage === 'at once') throw exhaustion(zone);
      this.made += 1;
      const instance: Instance = {
        name,
        providerID: `p://${zone}/${name}`,
        uid,
        state: this.boots,
        ip: `10.0.0.${this.made}`,
        createdAt: new Date(this.clock.now).toISOString(),
        specHash,
      };
      if (shortage) this.failures.set(zone, { specHash, at: this.clock.now });
      else this.machines.set(zone, { instance, leaving: this.lingers });
      return { ...instance, ...(shortage && { state: 'Provisioning' as const }) };
    });

  get: Provider['get'] = (ref) =>
    this.call('get', () => {
      const [, machine] = this.find(ref) ?? [];
      if (machine) return { ...machine.instance };
      const zone = this.zoneOf(ref);
      const failure = this.failures.get(zone);
      const recent = failure && this.clock.now - failure.at < FAILURE_MILLIS;
      if (recent && failure.specHash === ref.specHash) throw exhaustion(zone);
      throw new ProviderError('NotFound', 'there is none');
    });

  delete: Provider['delete'] = (ref) =>
    this.call('delete', () => {
      const [zone, machine] = this.find(ref) ?? [];
      if (zone === undefined || !machine) return 'gone';
      if (machine.leaving > 0) {
        machine.leaving -= 1;
        machine.instance.state = 'Stopped';
        return 'deleting';
      }
      this.machines.delete(zone);
      return 'gone';
    });

  list: Provider['list'] = async () => ({ instances: this.instances, unreachable: [] });

  async close(): Promise<void> {}

  private find(ref: InstanceRef): [string, Machine] | undefined {
    const zone = this.zoneOf(ref);
    const near = this.machines.get(zone);
    if (near) return [zone, near];
    const far = ref.providerID === undefined ? this.anywhere() : undefined;
    return far && [this.zoneOf(far.instance), far];
  }

  private zoneOf({ providerID, placement }: Pick<InstanceRef, 'providerID' | 'placement'>): string {
    if (!this.zonal) return '';
    return providerID?.split('/')[2] ?? placement?.zone ?? '';
  }

  private anywhere(): Machine | undefined {
    const listed = ({ instance }: Machine) => this.clock.now - Date.parse(instance.createdAt) >= LIST_LAG_MILLIS;
    return [...this.machines.values()].find(listed);
  }

  /** The call's work, unless the next fault forbids it; `lost` does it and loses the answer. */
  private async call<T>(call: Call, work: () => T): Promise<T> {
    const fault = this.faults[call].shift();
    if (fault && fault !== 'lost') throw new ProviderError(fault, `the provider says ${fault}`);
    const answer = work();
    if (fault) throw new ProviderError('Transient', 'the answer was lost');
    return answer;
  }
}

const exhaustion = (zone: string) =>
  new ProviderError('QuotaExceeded', `zone ${zone} has no machines left`, { zoneExhausted: true });
