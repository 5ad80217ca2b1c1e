import type { V1ContainerStateTerminated } from '@kubernetes/client-node';
import { UNANSWERED_SECONDS } from './pod.ts';
import { said, short } from './words.ts';

/**
 * A Squid that ran for so long and then ended is expected back in a moment; one that ended sooner crashes in a loop, or
 * never answered. The minute is for a kubelet that is late.
 */
const SETTLED_MILLIS = (UNANSWERED_SECONDS + 60) * 1000;

/** The runtime could not start it. Its words say why, and its times are of nothing: it started in 1970. */
const NEVER_RAN = ['StartError', 'ContainerCannotRun'];

export function hadSettled({ reason = '', startedAt, finishedAt }: V1ContainerStateTerminated): boolean {
  if (NEVER_RAN.includes(reason) || !startedAt?.getTime() || !finishedAt) return false;
  return finishedAt.getTime() - startedAt.getTime() >= SETTLED_MILLIS;
}

/** For people. */
export function howSquidEnded({
  reason = 'Error',
  exitCode,
  signal,
  message = '',
}: V1ContainerStateTerminated): string {
  const how = `Squid ended with ${reason} (${signal ? `signal ${signal}` : `exit code ${exitCode}`})`;
  if (NEVER_RAN.includes(reason)) return said(how, message);
  // Squid's other lines are of no help: what it was at, and what it has used, when it ended.
  const fatal = message.split('\n').find((line) => line.includes('FATAL'));
  return fatal ? `${how}: ${short(fatal.slice(fatal.indexOf('FATAL')))}` : how;
}
