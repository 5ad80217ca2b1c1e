#!/usr/bin/env node
import { pino } from 'pino';
import packageJson from '../package.json' with { type: 'json' };
import { run } from './run.ts';
import { readSettings, SettingsError, settingsTable } from './settings.ts';
import { StartError } from './start-error.ts';

/** The longest that a shutdown may take; what hangs by then is left to its own recovery. */
const SHUTDOWN_MILLIS = 30_000;

function help(): string {
  const rows = settingsTable().map(({ flag, env, fallback, help }) => {
    const name = `  ${flag.padEnd(24)} ${env.padEnd(22)}`;
    return `${name} ${help}${fallback ? ` [${fallback}]` : ''}`;
  });
  return [
    'Usage: node worker/main.ts [flags]',
    '',
    'Keeps the egress proxies that are declared as Proxy objects alive, and leases the healthy ones.',
    '',
    '  Flag                     Environment            Meaning [default]',
    ...rows,
    '  --help, --version',
    '',
  ].join('\n');
}

async function main(): Promise<void> {
  const settings = readSettings(process.argv.slice(2), process.env);
  if (settings === 'help') return void process.stdout.write(help());
  if (settings === 'version') return void process.stdout.write(`${packageJson.version}\n`);

  const logger = pino({ level: settings.logLevel, base: null, timestamp: pino.stdTimeFunctions.isoTime });
  const running = await run(settings, logger, packageJson.version);
  logger.info({ role: settings.role }, 'ready');

  const signal = await Promise.race([anySignal(), running.failed]).catch((error: unknown) => {
    logger.error({ err: error }, 'a part failed; stopping');
    process.exitCode = 1;
    return 'failure';
  });
  logger.info({ signal }, 'stopping');
  setTimeout(() => {
    logger.error('not stopped in time; leaving the rest to its recovery');
    process.exit(1);
  }, SHUTDOWN_MILLIS).unref();
  await running.stop();
  logger.info('stopped');
  process.exit();
}

function anySignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, resolve);
  });
}

try {
  await main();
} catch (error) {
  const expected = error instanceof StartError || error instanceof SettingsError;
  process.stderr.write(`${expected ? error.message : (error as Error).stack}\n`);
  process.exit(error instanceof SettingsError ? 2 : 1);
}
