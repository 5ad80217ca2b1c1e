import type { Instance, InstanceList } from '../../model/instance.ts';

/** The CRs as one read found them. */
export interface ProxyList {
  /** UIDs of all Proxies, those being deleted included: their finalizers own their instances. */
  uids: ReadonlySet<string>;
  /** False when any page or namespace is missing. */
  complete: boolean;
}

/** What a sweep knows before it looks a second time. */
export interface FirstLook {
  listed: InstanceList;
  proxies: ProxyList;
  /** Whether Proxies of other namespaces than the one watched could own instances here. */
  blindToNamespaces: boolean;
  minAgeMillis: number;
  /** Milliseconds since the epoch. */
  now: number;
}

/** What the second look at one instance said. */
export interface SecondLook {
  /** From a GET of that one instance; undefined when it is gone. */
  instance: Instance | undefined;
  /** Read after that GET. */
  proxies: ProxyList;
}

/** Spec §7, line by line: an instance is an orphan only when all of these hold. */
export const FIRST_LOOK = {
  'it has our UID label': ({ uid }: Instance) => uid !== '',
  'it is older than the minimum age': ({ createdAt }: Instance, { now, minAgeMillis }: FirstLook) =>
    now - Date.parse(createdAt) >= minAgeMillis,
  'its UID matches no Proxy': ({ uid }: Instance, { proxies }: FirstLook) => !proxies.uids.has(uid),
  'the list of Proxies is complete': (_: Instance, { proxies }: FirstLook) => proxies.complete,
  "the provider's list is complete": (_: Instance, { listed }: FirstLook) => listed.unreachable.length === 0,
  'all namespaces are seen': (_: Instance, { blindToNamespaces }: FirstLook) => !blindToNamespaces,
};

/** And the second witness, asked right before the deletion. */
export const SECOND_LOOK = {
  'a GET of the instance agrees': (first: Instance, { instance }: SecondLook) =>
    instance !== undefined && instance.uid === first.uid && instance.providerID === first.providerID,
  'a fresh read of the Proxies agrees': ({ uid }: Instance, { proxies }: SecondLook) =>
    proxies.complete && !proxies.uids.has(uid),
};

export const isSuspect = (instance: Instance, look: FirstLook): boolean =>
  Object.values(FIRST_LOOK).every((holds) => holds(instance, look));

export const isOrphan = (suspect: Instance, look: SecondLook): boolean =>
  Object.values(SECOND_LOOK).every((holds) => holds(suspect, look));
