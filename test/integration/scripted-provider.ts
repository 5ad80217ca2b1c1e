import type { Provider } from '../../activities/providers/contract.ts';
import { type Instance, type InstanceState, ProviderError, type ProviderErrorClass } from '../../model/instance.ts';

type Operation = 'create' | 'get' | 'delete';

/** How one call goes wrong. `lost`: it does its work, and then the answer never arrives. */
export type Fault = ProviderErrorClass | 'lost';

export interface ScriptedProvider extends Provider {
  /** What is really there, by name. */
  readonly instances: Map<string, Instance>;
  /** Every call, in order: `create proxy-abc`. */
  readonly calls: string[];
  /** How many instances were ever made under a name. */
  made(name: string): number;
  /** The next calls of this kind for this name go wrong, one fault each; `for ever` repeats the last one. */
  fail(name: string, operation: Operation, faults: Fault[], repeat?: 'for ever'): void;
  heal(name: string): void;
  /** The state in which new instances begin, and in which deleted ones linger. Default: Running, and gone at once. */
  begin(state: InstanceState): void;
  linger(deletes: number): void;
  set(name: string, changes: Partial<Instance>): void;
}

/** Stands in for providers whose errors no real one here makes on demand. Keeps the contract, and misbehaves as told. */
export function createScriptedProvider(): ScriptedProvider {
  const instances = new Map<string, Instance>();
  const calls: string[] = [];
  const counts = new Map<string, number>();
  const faults = new Map<string, { queue: Fault[]; repeat: boolean }>();
  const lingering = new Map<string, number>();
  let initial: InstanceState = 'Running';
  let deletesNeeded = 1;

  /** Runs the call's work unless a fault forbids it. */
  function perform<T>(operation: Operation, name: string, work: () => T): T {
    calls.push(`${operation} ${name}`);
    const script = faults.get(`${name} ${operation}`);
    const fault = script?.repeat && script.queue.length === 1 ? script.queue[0] : script?.queue.shift();
    if (!fault) return work();
    if (fault === 'lost') {
      work();
      throw new ProviderError('Transient', 'the connection broke');
    }
    throw new ProviderError(fault, `scripted ${fault}`);
  }

  const ours = (name: string, uid: string): Instance | undefined => {
    const instance = instances.get(name);
    if (instance && instance.uid !== uid) throw new ProviderError('Permanent', `${name} is not ours`);
    return instance;
  };

  return {
    instances,
    calls,
    made: (name) => counts.get(name) ?? 0,
    fail: (name, operation, queue, repeat) =>
      faults.set(`${name} ${operation}`, { queue, repeat: repeat === 'for ever' }),
    heal(name) {
      for (const key of faults.keys()) if (key.startsWith(`${name} `)) faults.delete(key);
    },
    begin(state) {
      initial = state;
    },
    linger(deletes) {
      deletesNeeded = deletes;
    },
    set(name, changes) {
      const instance = instances.get(name);
      if (instance) instances.set(name, { ...instance, ...changes });
    },
    async create({ name, uid, specHash }) {
      return perform('create', name, () => {
        const known = ours(name, uid);
        if (known) return known;
        const number = (counts.get(name) ?? 0) + 1;
        counts.set(name, number);
        const ip = `127.99.0.${number}`;
        const made: Instance = {
          name,
          uid,
          specHash,
          ip,
          providerID: `scripted://${name}`,
          state: initial,
          createdAt: new Date().toISOString(),
        };
        instances.set(name, made);
        return made;
      });
    },
    async get({ name, uid }) {
      return perform('get', name, () => {
        const known = ours(name, uid);
        if (!known) throw new ProviderError('NotFound', `no ${name}`);
        return known;
      });
    },
    async delete({ name }) {
      return perform('delete', name, () => {
        const seen = (lingering.get(name) ?? 0) + 1;
        lingering.set(name, seen);
        if (instances.has(name) && seen < deletesNeeded) {
          instances.set(name, { ...(instances.get(name) as Instance), state: 'Stopped' });
          return 'deleting';
        }
        lingering.delete(name);
        instances.delete(name);
        return 'gone';
      });
    },
    async list() {
      return { instances: [...instances.values()], unreachable: [] };
    },
    async close() {},
  };
}
