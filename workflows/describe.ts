import { conditionOf } from '../model/condition.ts';
import type { ObservedProxy, Report } from '../model/observation.ts';
import type { Next } from './decide.ts';

/** What someone on call reads in the Temporal UI: Markdown, current at each wait. */
export function describe(proxy: ObservedProxy, report: Report | undefined, phase: string, next: Next): string {
  const provisioned = report?.provisioned ?? conditionOf(proxy.status.conditions, 'Provisioned');
  const where =
    proxy.mode === 'External'
      ? `External endpoint ${proxy.host}`
      : `Instance ${proxy.instanceName} of ${proxy.provider.name}`;
  return [
    `**${phase}**${provisioned ? ` (${provisioned.reason}): ${provisioned.message}` : ''}`,
    '',
    `- ${where}, port ${proxy.port}`,
    `- Generation ${proxy.generation}, incarnation ${report?.incarnation ?? proxy.status.incarnation ?? 0}`,
    `- Next: ${nextWords(next)}`,
  ].join('\n');
}

function nextWords(next: Next): string {
  if (next === 'now') return 'another look, at once';
  if (next === 'finish') return 'nothing, this workflow is done';
  return `another look in ${Math.round(next.after / 100) / 10} s (${next.because}), or as soon as something changes`;
}
