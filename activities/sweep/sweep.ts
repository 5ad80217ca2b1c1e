import { conditionOf, ProvisionedReason } from '../../model/condition.ts';
import { type Instance, type InstanceList, ProviderError } from '../../model/instance.ts';
import type { ProviderHealth, ProviderHealthStatus } from '../../model/provider-health.ts';
import { isExternal, type Proxy, type ProxyRef, refOf } from '../../model/proxy.ts';
import type { AllProxies } from '../kubernetes.ts';
import type { Provider } from '../providers/contract.ts';
import { drifted } from './drift.ts';
import { hasRecovered, healthAfter, type OrphanOutcome, type SweepOutcome } from './health.ts';
import { isOrphan, isSuspect, type ProxyList, whatIsNotSeen } from './orphan.ts';

export interface SweepSettings {
  /** Instances younger than this are never orphans, in milliseconds. */
  minAgeMillis: number;
  /** More orphans than this at once are a sign of a mistake: nothing is deleted then. */
  maxOrphans: number;
  /** Say what would be deleted, and delete nothing. */
  dryRun: boolean;
  /** Only one namespace is watched, and nobody has said that it is the only one with Proxies. */
  blindToNamespaces: boolean;
}

export interface SweepDeps {
  settings: SweepSettings;
  listProxies(): Promise<AllProxies>;
  readHealth(provider: string): Promise<ProviderHealth | undefined>;
  writeHealth(provider: string, status: ProviderHealthStatus): Promise<void>;
  nudge(ref: ProxyRef): Promise<void>;
  now(): number;
  /** Orphans of a provider right now: deleted, or spared and why. */
  countOrphans(provider: string, outcome: OrphanOutcome): void;
  log: { warn(fields: object, message: string): void };
}

/** One look at everything that a provider has for us. */
export interface SweepRequest {
  provider: string;
  /** Whether orphans are looked for as well as drift. */
  orphans: boolean;
}

/** What a sweep did, for the Temporal UI. */
export interface SweepReport {
  instances: number;
  nudged: number;
  orphansDeleted: number;
  orphansSpared: number;
  unavailable?: string;
}

/**
 * Sweeps one provider: lists it once, nudges the Proxies that its answer concerns, deletes what nobody owns, and writes
 * its ProviderHealth. A provider that fails is an outcome, not a failure of the sweep.
 */
export async function sweepProvider(
  { provider: name, orphans: collect }: SweepRequest,
  provider: Provider,
  deps: SweepDeps,
  signal: AbortSignal,
): Promise<SweepReport> {
  const listed = await listProvider(provider, signal);
  // Read after the provider was listed: every instance in that list was made for a CR that is older than it.
  const all = await deps.listProxies();
  const before = (await deps.readHealth(name))?.status;

  if ('errorClass' in listed) {
    await deps.writeHealth(name, healthAfter(before, listed, deps.now()));
    return { instances: 0, nudged: 0, orphansDeleted: 0, orphansSpared: 0, unavailable: listed.errorClass };
  }
  const orphans = collect ? await collectOrphans(name, provider, listed, all, deps, signal) : undefined;
  const { instances, unreachable } = listed;
  const outcome: SweepOutcome = { listed: true, instances: instances.length, unreachable, ...(orphans && { orphans }) };
  const concerned = new Set(drifted(all.proxies, name, listed));
  if (hasRecovered(before, outcome)) for (const proxy of waitingFor(name, all.proxies)) concerned.add(proxy);
  for (const proxy of concerned) await deps.nudge(refOf(proxy));
  // Last, so that a sweep that dies before is seen to have been the last to fail, and nudges again.
  await deps.writeHealth(name, healthAfter(before, outcome, deps.now()));
  return {
    instances: instances.length,
    nudged: concerned.size,
    orphansDeleted: orphans?.deleted ?? 0,
    orphansSpared: orphans?.found === undefined ? 0 : orphans.found - orphans.deleted,
  };
}

async function listProvider(
  provider: Provider,
  signal: AbortSignal,
): Promise<InstanceList | (SweepOutcome & { listed: false })> {
  try {
    return await provider.list(signal);
  } catch (error) {
    if (signal.aborted) throw error;
    const errorClass = error instanceof ProviderError ? error.class : 'Transient';
    return { listed: false, errorClass, message: (error as Error).message };
  }
}

async function collectOrphans(
  name: string,
  provider: Provider,
  listed: InstanceList,
  all: AllProxies,
  deps: SweepDeps,
  signal: AbortSignal,
): Promise<OrphanOutcome> {
  const { settings } = deps;
  const { minAgeMillis, blindToNamespaces } = settings;
  const look = { listed, proxies: uidsOf(all), blindToNamespaces, minAgeMillis, now: deps.now() };
  const notSeen = whatIsNotSeen(look);
  const suspects = notSeen ? [] : listed.instances.filter((instance) => isSuspect(instance, look));
  const outcome: OrphanOutcome = { ...(!notSeen && { found: suspects.length }), deleted: 0 };
  const spared = notSeen ? incomplete(notSeen) : whySpared(suspects.length, settings);
  if (spared) outcome.spared = spared;
  else for (const suspect of suspects) if (await remove(suspect)) outcome.deleted += 1;
  deps.countOrphans(name, outcome);
  return outcome;

  async function remove(suspect: Instance): Promise<boolean> {
    const { name: instanceName, uid, providerID } = suspect;
    try {
      const instance = await secondGet(provider, suspect, signal);
      if (!isOrphan(suspect, { instance, proxies: uidsOf(await deps.listProxies()) })) return false;
      deps.log.warn({ provider: name, providerID, uid }, 'DELETING AN ORPHAN: no Proxy has this UID');
      await provider.delete({ name: instanceName, uid, providerID }, signal);
      return true;
    } catch (error) {
      if (signal.aborted) throw error;
      outcome.refused = (error as Error).message;
      deps.log.warn(
        { provider: name, providerID, uid, err: error },
        'An orphan could not be deleted; the next sweep tries again',
      );
      return false;
    }
  }
}

const incomplete = (condition: string) => ({
  reason: 'IncompleteView',
  message: `Nothing is deleted, since this does not hold: ${condition}`,
});

/** Why none of the suspects may be deleted, where that is so. */
function whySpared(count: number, { dryRun, maxOrphans }: SweepSettings): OrphanOutcome['spared'] {
  if (count > maxOrphans) {
    const advice = 'see whether they are, then raise --gc-max-orphans';
    const message = `${count} instances seem to be orphans, more than ${maxOrphans}; nothing is deleted: ${advice}`;
    return { reason: 'TooManyOrphans', message };
  }
  if (dryRun && count > 0)
    return { reason: 'DryRun', message: `${count} orphans would be deleted without --gc-dry-run` };
  return undefined;
}

async function secondGet(
  provider: Provider,
  { name, uid, providerID }: Instance,
  signal: AbortSignal,
): Promise<Instance | undefined> {
  try {
    return await provider.get({ name, uid, providerID }, signal);
  } catch (error) {
    if (error instanceof ProviderError && error.class === 'NotFound') return undefined;
    throw error;
  }
}

const uidsOf = ({ proxies, complete }: AllProxies): ProxyList => ({
  uids: new Set(proxies.map(({ metadata }) => metadata.uid)),
  complete,
});

const WAITING: readonly string[] = [ProvisionedReason.TransientError, ProvisionedReason.RateLimited];

/** Those that back off because of what their provider answered. */
const waitingFor = (provider: string, proxies: readonly Proxy[]): Proxy[] =>
  proxies.filter(({ metadata, spec, status }) => {
    if (isExternal(spec) || spec.provider !== provider) return false;
    const reason = conditionOf(status?.conditions, 'Provisioned')?.reason ?? '';
    return metadata.deletionTimestamp !== undefined || WAITING.includes(reason);
  });
