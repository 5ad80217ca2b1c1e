// The orchestrator, but for one thing: it kills itself, as kill -9 would, exactly at the point that CRASH_POINT describes.
import { pino } from 'pino';
import { run } from '../../worker/run.ts';
import { readSettings } from '../../worker/settings.ts';
import { type CrashPoint, crashSeams } from './crash-points.ts';

const settings = readSettings([], process.env);
if (typeof settings === 'string') throw new Error('not a place for flags');
const point = JSON.parse(process.env.CRASH_POINT ?? '') as CrashPoint;
const logger = pino({ level: settings.logLevel, base: null });
await run(
  settings,
  logger,
  '0',
  crashSeams(point, () => {
    process.kill(process.pid, 'SIGKILL');
    // The signal is on its way; nothing that comes after this point may happen.
    for (;;);
  }),
);
logger.info('ready');
