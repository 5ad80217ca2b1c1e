import type { AllProxies } from '../../../activities/kubernetes.ts';
import type { Provider } from '../../../activities/providers/contract.ts';
import type { SweepDeps, SweepSettings } from '../../../activities/sweep/sweep.ts';
import { type Instance, ProviderError } from '../../../model/instance.ts';
import type { ProviderHealthStatus } from '../../../model/provider-health.ts';
import type { Proxy } from '../../../model/proxy.ts';

export const MINUTE = 60_000;
export const T0 = Date.parse('2026-01-01T12:00:00Z');

/** Something with a beginning and an end, in milliseconds since the epoch. */
interface Span {
  from: number;
  /** Undefined: it is still there. */
  to?: number;
}

export interface WorldProxy extends Span {
  uid: string;
  namespace: string;
  /** Being deleted since; its finalizer still owns the instance. */
  deletingFrom?: number;
}

export interface WorldInstance extends Span {
  id: string;
  /** Whose it really is; empty for a stranger's. */
  uid: string;
  /** What a list that lags still says of it, where somebody has changed it since. */
  listedUid?: string;
  /** What the provider's clock wrote down. */
  createdAt: number;
}

/** How well things can be seen during one sweep. */
export interface Sight {
  listLag: number;
  /** Zones that do not answer: every so-manieth instance is missing from the list. */
  missingZone?: number;
  firstLag: number;
  /** The read of the second look; what a stale API server may be behind by is less than the minimum age. */
  secondLag: number;
  /** A page of the Proxies is missing in the first read: every so-manieth. */
  missingPage?: number;
  /** And in those of the second look. */
  missingPageLater?: number;
  /** Only this namespace is seen. */
  namespace?: string;
  /** How long each call takes. */
  callMillis: number;
}

export const CLEAR: Sight = { listLag: 0, firstLag: 0, secondLag: 0, callMillis: 1_000 };

/** A provider and an API server as a sweep sees them, with what was deleted and whether that was right. */
export class World {
  readonly wrong: string[] = [];
  readonly deleted: string[] = [];
  health: ProviderHealthStatus | undefined;
  sight: Sight = CLEAR;
  private now = T0;
  private reads = 0;
  private readonly proxies: WorldProxy[];
  private readonly instances: WorldInstance[];

  constructor(proxies: WorldProxy[], instances: WorldInstance[]) {
    this.proxies = proxies;
    this.instances = instances;
  }

  begin(at: number, sight: Sight): void {
    this.now = at;
    this.sight = sight;
    this.reads = 0;
    this.deleted.length = 0;
  }

  /** Instances that no Proxy owns or will own, and that are not a stranger's. */
  orphansLeft(): WorldInstance[] {
    return this.instances.filter(
      (instance) => there(instance, this.now) && instance.uid !== '' && !this.owner(instance.uid),
    );
  }

  provider(): Provider {
    return {
      create: () => Promise.reject(new Error('a sweep makes nothing')),
      list: async () => {
        this.pass();
        const { listLag, missingZone } = this.sight;
        const listed = this.instances.filter((instance) => there(instance, this.now - listLag));
        const seen = missingZone ? listed.filter((_, index) => index % missingZone !== 0) : listed;
        const said = seen.map((instance) => describe(instance, listLag > 0 ? instance.listedUid : undefined));
        return { instances: said, unreachable: missingZone ? ['zone-b'] : [] };
      },
      // Says what is there, whoever asks: the sweep itself must compare.
      get: async ({ providerID }) => {
        this.pass();
        const found = this.instances.find(({ id }) => id === providerID);
        if (!found || !there(found, this.now)) throw new ProviderError('NotFound', 'no such instance');
        return describe(found);
      },
      delete: async ({ providerID }) => {
        this.pass();
        this.judge(providerID ?? '');
        return 'gone';
      },
      close: async () => {},
    };
  }

  deps(settings: SweepSettings): SweepDeps {
    return {
      settings,
      listProxies: async () => this.read(),
      readHealth: async () =>
        this.health && { metadata: { name: 'p', namespace: '', uid: '', resourceVersion: '' }, status: this.health },
      writeHealth: async (_, status) => {
        this.health = status;
      },
      nudge: async () => {},
      now: () => this.now,
      countOrphans: () => {},
      log: { warn: () => {} },
    };
  }

  private read(): AllProxies {
    this.pass();
    this.reads += 1;
    const { firstLag, secondLag, namespace } = this.sight;
    const at = this.now - (this.reads === 1 ? firstLag : secondLag);
    const missingPage = this.reads === 1 ? this.sight.missingPage : this.sight.missingPageLater;
    const all = this.proxies.filter((proxy) => there(proxy, at) && (!namespace || proxy.namespace === namespace));
    const seen = missingPage ? all.filter((_, index) => index % missingPage !== 0) : all;
    return { proxies: seen.map(cr), complete: !missingPage };
  }

  private judge(id: string): void {
    const instance = this.instances.find((candidate) => candidate.id === id);
    if (!instance || !there(instance, this.now)) return;
    const { sight } = this;
    if (instance.uid === '') this.wrong.push(`${id}: a stranger's instance`);
    else if (this.owner(instance.uid)) this.wrong.push(`${id}: a live instance`);
    if (sight.missingPage || sight.missingZone || sight.namespace)
      this.wrong.push(`${id}: deleted without seeing everything`);
    instance.to = this.now;
    this.deleted.push(id);
  }

  /** The CR that owns an instance now, a CR that is being deleted included. */
  private owner(uid: string): WorldProxy | undefined {
    return this.proxies.find((proxy) => proxy.uid === uid && there(proxy, this.now));
  }

  private pass(): void {
    this.now += this.sight.callMillis;
  }
}

const there = ({ from, to }: Span, at: number): boolean => from <= at && (to === undefined || at < to);

function describe({ id, uid, createdAt }: WorldInstance, listedUid = uid): Instance {
  return {
    name: id,
    providerID: id,
    uid: listedUid,
    state: 'Running',
    ip: '10.0.0.1',
    createdAt: new Date(createdAt).toISOString(),
    specHash: '',
  };
}

function cr({ uid, namespace, deletingFrom }: WorldProxy): Proxy {
  const metadata = { name: uid, namespace, uid, generation: 1, resourceVersion: '1' };
  return {
    apiVersion: '',
    kind: 'Proxy',
    metadata: deletingFrom === undefined ? metadata : { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
    spec: { provider: 'p' },
  };
}
