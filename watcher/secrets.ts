import type { V1Secret } from '@kubernetes/client-node';
import { CREDENTIALS_LABEL, isExternal, type Proxy } from '../model/proxy.ts';
import { type Listed, type ListWatch, startListWatch } from './list-watch.ts';
import type { CacheOptions } from './proxy-cache.ts';

type LabelledSecret = V1Secret & Listed;

interface SecretWatch extends CacheOptions {
  /** Only Secrets with this label, value `"true"`, are ever asked for. */
  label: string;
  /** A Secret that is new, changed or (then without content) gone. */
  onChange(namespace: string, name: string, secret: LabelledSecret | undefined): void;
}

/** Reports each change of the labelled Secrets once. Keeps their versions, never their content. */
export function startSecretWatch({ namespace, label, onChange, ...options }: SecretWatch): ListWatch {
  const { warn } = options;
  const versions = new Map<string, string>();

  function report(namespace: string, name: string, secret?: LabelledSecret): void {
    try {
      onChange(namespace, name, secret);
    } catch (error) {
      warn(`A handler failed on Secret ${namespace}/${name}`, error);
    }
  }

  function put(secret: LabelledSecret): void {
    const { namespace, name, resourceVersion } = secret.metadata;
    const key = `${namespace}/${name}`;
    if (versions.get(key) === resourceVersion) return;
    versions.set(key, resourceVersion);
    report(namespace, name, secret);
  }

  function remove(key: string): void {
    const [namespace = '', name = ''] = key.split('/');
    if (versions.delete(key)) report(namespace, name);
  }

  return startListWatch<LabelledSecret>({
    ...options,
    what: `Secrets labelled ${label}`,
    path: `/api/v1/${namespace ? `namespaces/${namespace}/` : ''}secrets`,
    labelSelector: `${label}=true`,
    onList(items) {
      const listed = new Set(items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`));
      for (const key of [...versions.keys()]) if (!listed.has(key)) remove(key);
      for (const secret of items) put(secret);
    },
    onEvent: (type, secret) =>
      type === 'DELETED' ? remove(`${secret.metadata.namespace}/${secret.metadata.name}`) : put(secret),
  });
}

export interface CredentialsCache extends ListWatch {
  /** Of an External proxy that names a Secret; undefined where that is missing, unlabelled or incomplete. */
  of(proxy: Proxy): { username: string; password: string } | undefined;
}

/** The logins of External proxies, in memory, so that probes and leases have them while the API server is away. */
export function startCredentialsCache(options: CacheOptions): CredentialsCache {
  const logins = new Map<string, { username: string; password: string }>();
  const watch = startSecretWatch({
    ...options,
    label: CREDENTIALS_LABEL,
    onChange(namespace, name, secret) {
      const username = decoded(secret?.data?.username);
      const password = decoded(secret?.data?.password);
      if (username === undefined || password === undefined) logins.delete(`${namespace}/${name}`);
      else logins.set(`${namespace}/${name}`, { username, password });
    },
  });
  return {
    get listedAt() {
      return watch.listedAt;
    },
    get heardAt() {
      return watch.heardAt;
    },
    of({ metadata, spec }) {
      const name = isExternal(spec) ? spec.endpoint.credentialsSecretRef?.name : undefined;
      return name === undefined ? undefined : logins.get(`${metadata.namespace}/${name}`);
    },
    stop: () => watch.stop(),
  };
}

const decoded = (content: string | undefined): string | undefined =>
  content === undefined ? undefined : Buffer.from(content, 'base64').toString('utf8');
