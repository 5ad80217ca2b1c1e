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

/** Spec §7, line by line: nothing is deleted unless all of these hold of what was seen, */
export const WHOLE_VIEW = {
  'the list of Proxies is complete': ({ proxies }: FirstLook) => proxies.complete,
  "the provider's list is complete": ({ listed }: FirstLook) => listed.unreachable.length === 0,
  'Proxies of all namespaces are seen': ({ blindToNamespaces }: FirstLook) => !blindToNamespaces,
};

/** all of these of the instance, */
export const SUSPECT = {
  'it has our UID label': ({ uid }: Instance) => uid !== '',
  'it is older than the minimum age': ({ createdAt }: Instance, { now, minAgeMillis }: FirstLook) =>
    now - Date.parse(createdAt) >= minAgeMillis,
  'its UID matches no Proxy': ({ uid }: Instance, { proxies }: FirstLook) => !proxies.uids.has(uid),
};

/** and all of these of a second look, right before the deletion. */
export const SECOND_LOOK = {
  'a GET of the instance agrees': (first: Instance, { instance }: SecondLook) =>
    instance !== undefined && instance.uid === first.uid && instance.providerID === first.providerID,
  'a fresh read of the Proxies agrees': ({ uid }: Instance, { proxies }: SecondLook) =>
    proxies.complete && !proxies.uids.has(uid),
};

/** Which condition of a whole view does not hold, if any. */
export const whatIsNotSeen = (look: FirstLook): string | undefined =>
  Object.entries(WHOLE_VIEW).find(([, holds]) => !holds(look))?.[0];

export const isSuspect = (instance: Instance, look: FirstLook): boolean =>
  Object.values(SUSPECT).every((holds) => holds(instance, look));

export const isOrphan = (suspect: Instance, look: SecondLook): boolean =>
  Object.values(SECOND_LOOK).every((holds) => holds(suspect, look));
