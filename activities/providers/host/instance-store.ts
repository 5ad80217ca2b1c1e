import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const instanceRecord = z.object({
  name: z.string(),
  /** UID of the Proxy it was made for. */
  uid: z.string().min(1),
  /** The Proxy's namespace and name, for people who look at the host. */
  namespace: z.string(),
  proxyName: z.string(),
  address: z.ipv4(),
  port: z.int().min(1).max(65535),
  specHash: z.string(),
  /** RFC 3339. */
  createdAt: z.string(),
  /** Its deletion has begun: it is never started again, only finished off. */
  deleting: z.boolean().optional(),
});

/** What is on disk of one instance. */
export type InstanceRecord = z.output<typeof instanceRecord>;

/** Names of instances, see `instanceName`; anything else in the state directory is not ours (`lost+found`). */
export const INSTANCE_NAME = /^[a-z0-9][-a-z0-9]{0,62}$/;

/** An instance's folder whose `instance.json` is missing or is not ours. */
export class UnreadableInstance extends Error {
  override readonly name = 'UnreadableInstance';
}

/**
 * The state directory: `<instance name>/{instance.json, squid.conf, squid.pid}`. An instance's folder appears complete
 * and disappears whole, by a rename; folders whose name starts with a dot are on their way in or out.
 */
export interface InstanceStore {
  confPath(name: string): string;
  pidPath(name: string): string;
  names(): Promise<string[]>;
  /** Undefined if there is no such instance; throws {@link UnreadableInstance} if it can't be told whose it is. */
  read(name: string): Promise<InstanceRecord | undefined>;
  add(record: InstanceRecord, squidConf: string): Promise<void>;
  markDeleting(record: InstanceRecord): Promise<void>;
  remove(name: string): Promise<void>;
  /** Removes what a crash left half-way in or out. Only while nobody adds. */
  removeRemnants(): Promise<void>;
}

export async function createInstanceStore(stateDir: string): Promise<InstanceStore> {
  await mkdir(stateDir, { recursive: true, mode: 0o755 });
  const folder = (name: string): string => join(stateDir, name);
  const recordPath = (name: string): string => join(stateDir, name, 'instance.json');
  const hidden = (name: string): string => join(stateDir, `.${name}.${randomUUID()}`);
  const text = (record: InstanceRecord): string => `${JSON.stringify(record, undefined, 2)}\n`;

  return {
    confPath: (name) => join(stateDir, name, 'squid.conf'),
    pidPath: (name) => join(stateDir, name, 'squid.pid'),

    async names() {
      const entries = await readdir(stateDir, { withFileTypes: true });
      return entries
        .filter((entry) => entry.isDirectory() && INSTANCE_NAME.test(entry.name))
        .map((entry) => entry.name);
    },

    async read(name) {
      const path = recordPath(name);
      try {
        const record = instanceRecord.parse(JSON.parse(await readFile(path, 'utf8')));
        if (record.name !== name) throw new Error(`it is the record of ${record.name}`);
        return record;
      } catch (error) {
        if (isMissing(error) && !(await exists(folder(name)))) return undefined;
        throw new UnreadableInstance(`${path} is not a record of ours`, { cause: error });
      }
    },

    async add(record, squidConf) {
      const incoming = hidden(record.name);
      await mkdir(incoming, { mode: 0o755 });
      await writeFile(join(incoming, 'squid.conf'), squidConf, { flush: true });
      await writeFile(join(incoming, 'instance.json'), text(record), { flush: true });
      await rename(incoming, folder(record.name));
    },

    async markDeleting(record) {
      const next = `${recordPath(record.name)}.next`;
      await writeFile(next, text({ ...record, deleting: true }), { flush: true });
      await rename(next, recordPath(record.name));
    },

    async remove(name) {
      const outgoing = hidden(name);
      try {
        await rename(folder(name), outgoing);
      } catch (error) {
        if (isMissing(error)) return;
        throw error;
      }
      await rm(outgoing, { recursive: true, force: true });
    },

    async removeRemnants() {
      for (const entry of await readdir(stateDir)) {
        if (REMNANT.test(entry)) await rm(join(stateDir, entry), { recursive: true, force: true });
      }
    },
  };
}

/** What `hidden` makes, and nothing else that someone may keep here. */
const REMNANT = /^\.[-a-z0-9]+\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';

const exists = (path: string): Promise<boolean> =>
  readdir(path).then(
    () => true,
    (error) => !isMissing(error),
  );
