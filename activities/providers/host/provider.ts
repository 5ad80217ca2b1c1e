import { type InstanceRef, ProviderError } from '../../../model/instance.ts';
import type { Provider } from '../contract.ts';
import { createAddressRange } from './addresses.ts';
import type { HostConfig } from './config.ts';
import { createInstance } from './create.ts';
import { createHostInstances } from './host-instances.ts';
import { createHostLock } from './host-lock.ts';
import { createInstanceStore, INSTANCE_NAME, type InstanceRecord, UnreadableInstance } from './instance-store.ts';
import type { HostLogger } from './logger.ts';
import { revive } from './revive.ts';
import { squidsByConf } from './squid-processes.ts';
import { findSquidProgram } from './squid-program.ts';

const SILENT: HostLogger = { info() {}, warn() {} };

export interface HostProviderDeps {
  logger?: HostLogger;
  /** Milliseconds since the epoch. */
  now?: () => number;
}

/**
 * The `host` provider: an instance is a Squid process on the worker's own host, bound to one address of a configured
 * range and sending from it. Linux only, as processes are found through /proc.
 *
 * - Instances outlive the worker. At start, those recorded in `stateDir` whose process is gone (a reboot, a sandbox that
 *   was stopped) run again as they were. One that dies later is `Stopped`: whoever owns it replaces it.
 *   A service manager must let them live when the worker stops (systemd: `KillMode=process`).
 * - Any number of worker processes on the host may serve one `stateDir`; no two instances ever share an address.
 * - Cloud-init is neither run nor written down: a shared host is not a machine of one's own to initialise, and the text
 *   may be secret. It is part of the spec hash all the same, so an edit or a rotation replaces the instance.
 * - Placement is not needed. What is given takes part in the spec hash, and nothing else comes of it.
 *
 * Rejects with a Permanent `ProviderError` where it can't work: not on Linux, or without Squid.
 */
export async function createHostProvider(config: HostConfig, deps: HostProviderDeps = {}): Promise<Provider> {
  const { logger = SILENT, now = Date.now } = deps;
  if (process.platform !== 'linux') {
    throw new ProviderError(
      'Permanent',
      `the host provider ${config.name} needs Linux, and this is ${process.platform}`,
    );
  }
  const program = await findSquidProgram(config.squid);
  const store = await createInstanceStore(config.stateDir);
  const lock = createHostLock(config.stateDir);
  const range = createAddressRange(config.addresses);
  const instances = createHostInstances({ config, program, store, range, lock, now });
  await revive({ store, instances, lock, logger });

  /** Runs a call on one instance alone, and turns whatever goes wrong into a `ProviderError`. */
  const exclusively = <T>(name: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> =>
    asProviderErrors(signal, () => lock(`instance/${checked(name)}`, signal, work));

  async function ours(name: string, uid: string): Promise<InstanceRecord | undefined> {
    const record = await store.read(name);
    if (record && record.uid !== uid) {
      throw new ProviderError(
        'Permanent',
        `${store.confPath(name)} belongs to another Proxy, with the UID ${record.uid}`,
      );
    }
    return record;
  }

  return {
    create: (request, signal) =>
      exclusively(request.name, signal, async () => {
        const existing = await ours(request.name, request.uid);
        return createInstance({ instances, logger }, request, existing, signal);
      }),

    get: (ref, signal) =>
      asProviderErrors(signal, async () => {
        const record = await ours(checked(ref.name), ref.uid);
        if (record) {
          const { state, reason } = await instances.stateOf(record);
          return instances.asInstance(record, state, reason);
        }
        if ((await squidsByConf()).has(store.confPath(ref.name))) return withoutRecord(ref);
        throw new ProviderError('NotFound', `there is no instance ${ref.name} on this host`);
      }),

    delete: (ref, signal) =>
      exclusively(ref.name, signal, async () => {
        const record = await store.read(ref.name);
        if (record && record.uid !== ref.uid) return 'gone';
        const gone = record ? await instances.destroy(record) : await instances.stop(ref.name);
        return gone ? 'gone' : 'deleting';
      }),

    list: (signal) =>
      asProviderErrors(signal, async () => {
        const names = await store.names();
        const running = await squidsByConf();
        const unreachable: string[] = [];
        const found = await Promise.all(
          names.map(async (name) => {
            try {
              const record = await store.read(name);
              if (!record) return [];
              const lives = !record.deleting && running.has(store.confPath(name));
              return [instances.asInstance(record, lives ? 'Running' : 'Stopped')];
            } catch (error) {
              logger.warn(
                { instance: name, error: String(error) },
                'an instance can not be read; the list is incomplete',
              );
              unreachable.push(name);
              return [];
            }
          }),
        );
        return { instances: found.flat(), unreachable };
      }),

    async close() {},
  };

  /** A Squid of this name lives though its folder was removed by hand. `Stopped`, so that it gets deleted. */
  function withoutRecord({ name, uid }: InstanceRef) {
    const providerID = `host://${config.name}/${name}`;
    const createdAt = new Date(now()).toISOString();
    return { name, providerID, uid, state: 'Stopped' as const, reason: 'its record is gone', createdAt, specHash: '' };
  }
}

/** A name becomes a folder, so it must be harmless. */
function checked(name: string): string {
  if (INSTANCE_NAME.test(name)) return name;
  throw new ProviderError('Permanent', `"${name}" can't be the name of an instance`);
}

async function asProviderErrors<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    signal.throwIfAborted();
    return await work();
  } catch (error) {
    if (error instanceof ProviderError) throw error;
    if (error instanceof UnreadableInstance) {
      throw new ProviderError('Permanent', `${error.message}; look at it, and remove its folder by hand`, {
        cause: error,
      });
    }
    const what = signal.aborted ? 'gave up, as the call was cancelled or timed out' : String((error as Error).message);
    throw new ProviderError('Transient', what, { cause: error });
  }
}
