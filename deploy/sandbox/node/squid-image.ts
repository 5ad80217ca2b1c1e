import { createHash } from 'node:crypto';
import { createReadStream, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kubernetesConfig } from '../../../activities/providers/kubernetes/config.ts';
import { runCommand } from '../run-command.ts';

/** The name that the `kubernetes` provider uses unless told otherwise, as containerd writes it. */
export const squidImage = `docker.io/${kubernetesConfig.shape.image.parse(undefined)}`;
/** What keeps a pod's namespaces open; any program that waits will do. */
export const pauseImage = 'sandbox.local/pause:1';
export const imageArchive = 'images.tar';
const debianSuite = 'bookworm';
/** Changes whenever what is made here does. */
export const imageRecipe = createHash('sha256')
  .update(`${squidImage} ${pauseImage} ${debianSuite} 1`)
  .digest('hex')
  .slice(0, 12);

/** Of no use to a proxy, and half of the size. */
const ballast = ['var/cache/apt', 'var/lib/apt/lists', 'usr/share/doc', 'usr/share/man', 'usr/share/locale'];

/**
 * Makes the archive of both images, from Debian packages: a stand-in, under its name, for the image that real clusters
 * pull, as a sandbox asks for no registry. Needs root and debootstrap.
 */
export async function makeSquidImage(
  folder: string,
  { signal, note }: { signal: AbortSignal | undefined; note: (text: string) => void },
): Promise<void> {
  const rootfs = join(folder, 'rootfs');
  const layer = join(folder, 'layer.tar');
  note('debootstrap');
  const packages = '--include=squid,ca-certificates';
  // debootstrap leaves /proc and /sys mounted when it is killed: in a mount namespace of its own, they go with it.
  const bootstrap = ['--mount', '--', 'debootstrap', '--variant=minbase', packages, debianSuite, rootfs];
  await runCommand('unshare', bootstrap, { what: 'making the Squid image with debootstrap', signal });
  for (const path of ballast) rmSync(join(rootfs, path), { recursive: true, force: true });
  note('packing');
  await tar(['--directory', rootfs, '--create', '--file', layer, '.'], signal);
  const digest = await sha256(layer);
  const images = [
    { name: squidImage, config: 'squid.json', entrypoint: ['/usr/sbin/squid', '-N'] },
    { name: pauseImage, config: 'pause.json', entrypoint: ['/bin/sleep', 'infinity'] },
  ];
  for (const { config, entrypoint } of images) writeFileSync(join(folder, config), imageConfig(entrypoint, digest));
  const manifest = images.map(({ name, config }) => ({ Config: config, RepoTags: [name], Layers: ['layer.tar'] }));
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest));
  const members = ['manifest.json', 'squid.json', 'pause.json', 'layer.tar'];
  await tar(['--directory', folder, '--create', '--file', join(folder, imageArchive), ...members], signal);
  for (const path of ['rootfs', ...members]) rmSync(join(folder, path), { recursive: true, force: true });
}

/** See the OCI image configuration; the archive itself is what `docker save` writes. */
function imageConfig(entrypoint: string[], layerDigest: string): string {
  const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
  const rootfs = { type: 'layers', diff_ids: [`sha256:${layerDigest}`] };
  return JSON.stringify({ architecture, os: 'linux', config: { Entrypoint: entrypoint }, rootfs });
}

async function tar(args: string[], signal: AbortSignal | undefined): Promise<void> {
  await runCommand('tar', args, { what: 'packing the Squid image', signal });
}

async function sha256(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk);
  return hash.digest('hex');
}
