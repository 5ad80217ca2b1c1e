import { conditionOf } from '../model/condition.ts';
import type { ObservedProxy, Report } from '../model/observation.ts';
import type { Phase } from '../model/proxy.ts';
import type { Wait } from './decision.ts';

/** What someone on call reads in the Temporal UI: Markdown, current at each wait. */
export function describe(proxy: ObservedProxy, report: Report | undefined, phase: Phase, wait: Wait): string {
  const provisioned = report?.provisioned ?? conditionOf(proxy.status.conditions, 'Provisioned');
  const zone = report?.zone === undefined ? proxy.status.zone : report.zone;
  const where =
    proxy.mode === 'External'
      ? `External endpoint ${proxy.host}`
      : `Instance ${proxy.instanceName} of ${proxy.provider.name}${zone ? ` in ${zone}` : ''}`;
  return [
    `**${phase}**${provisioned ? ` (${provisioned.reason}): ${provisioned.message}` : ''}`,
    '',
    `- ${where}, port ${proxy.port}`,
    `- Generation ${proxy.generation}, incarnation ${report?.incarnation ?? proxy.status.incarnation ?? 0}`,
    `- Looks again in ${inWords(wait.after)} (${wait.because}), or as soon as something changes`,
  ].join('\n');
}

function inWords(millis: number): string {
  if (millis < 120_000) return `${Math.round(millis / 100) / 10} s`;
  return millis < 7_200_000 ? `${Math.round(millis / 60_000)} min` : `${Math.round(millis / 3_600_000)} h`;
}
