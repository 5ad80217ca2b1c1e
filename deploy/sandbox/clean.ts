// `npm run clean`: removes the sandbox's state. What was downloaded and built stays, unless --cache is given.
import { execFileSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { describeFailure, SandboxError } from './failure.ts';
import { endKilledRun } from './leftovers.ts';
import { tryLock } from './lock.ts';
import { cacheFolder, type SandboxPaths, sandboxPaths } from './paths.ts';
import { requireProc } from './process-identity.ts';
import { rememberedSquidFolders } from './squids.ts';

const help = `Usage: npm run clean [-- OPTIONS]

Removes .sandbox/ (or SANDBOX_DIR): proxies, workflows, leases, certificates, logs. Refuses while a sandbox runs there.

Options:
  --cache  also remove the parts that were downloaded and built; the next start obtains them again
  --help   print this`;

async function clean(paths: SandboxPaths): Promise<void> {
  const used = [paths.addresses, paths.run, paths.lock].some((path) => existsSync(path));
  // It may have been removed by hand, under a node that a killed run had left and that goes on writing there.
  const ended = used ? [] : await endLeftovers(paths);
  if (!existsSync(paths.dir)) {
    console.log(`Nothing to remove: there is no ${paths.dir}`);
    return;
  }
  // An override may point anywhere; only a folder that a start has been in is ours to remove.
  if (!paths.isDefault && !used && ended.length === 0) {
    throw new SandboxError(`${paths.dir} does not look like a sandbox's state; remove it yourself if that is right.`);
  }
  const lock = tryLock(paths.lock);
  if ('holder' in lock) {
    const { pid } = lock.holder;
    throw new SandboxError(`A sandbox runs on ${paths.dir}: process ${pid}. Stop it first: kill ${pid}`);
  }
  try {
    await endLeftovers(paths);
    rmSync(paths.dir, { recursive: true, force: true });
    console.log(`Removed ${paths.dir}`);
  } finally {
    lock.release();
  }
}

async function endLeftovers(paths: SandboxPaths): Promise<string[]> {
  const left = await endKilledRun(paths, { squidsOf: [paths.hostState, ...rememberedSquidFolders(paths)] });
  if (left.length > 0) console.log(`Stopped what a killed run had left: ${left.join(', ')}`);
  return left;
}

function cleanCache(cache: string, remove: boolean): void {
  if (!existsSync(cache)) return;
  const size = execFileSync('du', ['-sh', cache], { encoding: 'utf8' }).split('\t')[0];
  if (remove) rmSync(cache, { recursive: true, force: true });
  console.log(
    remove
      ? `Removed ${cache} (${size})`
      : `Kept the parts in ${cache} (${size}); npm run clean -- --cache removes them`,
  );
}

try {
  const options = { help: { type: 'boolean' }, cache: { type: 'boolean' } } as const;
  const { values } = parseArgs({ options, allowPositionals: false });
  if (values.help) console.log(help);
  else {
    requireProc();
    await clean(sandboxPaths());
    cleanCache(cacheFolder(), values.cache === true);
  }
} catch (error) {
  const usage = error instanceof TypeError && 'code' in error;
  console.error(usage ? `${error.message}\nSee: npm run clean -- --help` : describeFailure(error));
  process.exitCode = usage ? 2 : 1;
}
