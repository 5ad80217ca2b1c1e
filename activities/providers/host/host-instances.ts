import { type Instance, type InstanceRequest, type InstanceState, ProviderError } from '../../../model/instance.ts';
import { squidConf } from '../squid-conf.ts';
import type { AddressRange } from './addresses.ts';
import type { HostConfig } from './config.ts';
import type { HostLock } from './host-lock.ts';
import type { InstanceRecord, InstanceStore } from './instance-store.ts';
import { findSquid, stopSquids } from './squid-processes.ts';
import { accepts, runSquid } from './squid-start.ts';

/** In which requests may still end when an instance is deleted. */
const STOP_GRACE_MILLIS = 300;

export interface HostInstancesDeps {
  config: HostConfig;
  /** Absolute path of the Squid binary. */
  program: string;
  store: InstanceStore;
  range: AddressRange;
  lock: HostLock;
  now: () => number;
}

/** The steps that a host's instances go through. The caller of a step that changes something holds the instance's lock. */
export interface HostInstances {
  /** Gives the instance an address that no other has, and a folder. Nothing runs yet. */
  claim(request: InstanceRequest, except: ReadonlySet<string>, signal: AbortSignal): Promise<InstanceRecord>;
  /** See `runSquid`. */
  run(record: InstanceRecord, signal: AbortSignal): Promise<boolean>;
  stateOf(record: InstanceRecord): Promise<{ state: InstanceState; reason?: string }>;
  /** Removes process and folder; can be repeated after a crash at any point. False: the process won't go yet. */
  destroy(record: InstanceRecord): Promise<boolean>;
  /** Ends processes of this name, recorded or not. False: one won't go yet. */
  stop(name: string): Promise<boolean>;
  asInstance(record: InstanceRecord, state: InstanceState, reason?: string): Instance;
}

export function createHostInstances({ config, program, store, range, lock, now }: HostInstancesDeps): HostInstances {
  async function takenAddresses(): Promise<Set<string>> {
    const records = await Promise.all((await store.names()).map((name) => store.read(name).catch(() => undefined)));
    return new Set(records.flatMap((record) => (record ? [record.address] : [])));
  }

  const instances: HostInstances = {
    // One lock for all names: who looks for a free address must not be overtaken by another who takes it.
    claim: (request, except, signal) =>
      lock('addresses', signal, async () => {
        const taken = await takenAddresses();
        const address = range.candidates(request.name).find((one) => !taken.has(one) && !except.has(one));
        if (address === undefined) {
          throw new ProviderError(
            'QuotaExceeded',
            `all ${range.size} addresses of provider ${config.name} are in use; give it more, or delete a Proxy`,
          );
        }
        const { name, uid, namespace, proxyName, port, specHash } = request;
        const createdAt = new Date(now()).toISOString();
        const record = { name, uid, namespace, proxyName, address, port, specHash, createdAt };
        const conf = squidConf({ ...config, port, listenAddress: address, outgoingAddress: address });
        await store.add(record, conf);
        return record;
      }),

    run({ name, address, port }, signal) {
      const confPath = store.confPath(name);
      return runSquid({ program, confPath, pidPath: store.pidPath(name), address, port }, signal);
    },

    async stateOf({ name, address, port, deleting }) {
      if (deleting) return { state: 'Stopped', reason: 'its deletion has begun' };
      const pid = await findSquid(store.confPath(name), store.pidPath(name));
      if (pid === undefined) return { state: 'Stopped', reason: 'its Squid process has ended' };
      if (await accepts(address, port)) return { state: 'Running' };
      return { state: 'Provisioning', reason: `its Squid process (${pid}) does not accept connections yet` };
    },

    async destroy(record) {
      if (!record.deleting) await store.markDeleting(record);
      if (!(await instances.stop(record.name))) return false;
      await store.remove(record.name);
      return true;
    },

    stop: (name) => stopSquids(store.confPath(name), STOP_GRACE_MILLIS),

    asInstance: ({ name, uid, address, createdAt, specHash }, state, reason) => ({
      name,
      providerID: `host://${config.name}/${name}`,
      uid,
      state,
      ip: address,
      createdAt,
      specHash,
      ...(reason === undefined ? {} : { reason }),
    }),
  };
  return instances;
}
