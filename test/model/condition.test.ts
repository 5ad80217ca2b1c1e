import { describe, expect, it } from 'vitest';
import { type Condition, conditionOf, type Statement, withCondition } from '../../model/condition.ts';
import { phaseOf } from '../../model/phase.ts';

const AT = Date.parse('2026-01-01T00:00:00.900Z');
const LATER = AT + 60_000;
const say = (status: Condition['status'], reason: string, message = ''): Statement => ({ status, reason, message });

describe('withCondition', () => {
  const before = withCondition(undefined, 'Provisioned', say('False', 'Provisioning'), 1, AT);

  it('writes the standard metav1 shape, in whole seconds', () => {
    expect(before).toEqual([
      {
        type: 'Provisioned',
        status: 'False',
        reason: 'Provisioning',
        message: '',
        observedGeneration: 1,
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ]);
  });

  it('moves the transition time only when the status changes', () => {
    const reworded = withCondition(before, 'Provisioned', say('False', 'QuotaExceeded', 'full'), 2, LATER);
    expect(conditionOf(reworded, 'Provisioned')).toMatchObject({
      reason: 'QuotaExceeded',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    });
    const flipped = withCondition(before, 'Provisioned', say('True', 'Created'), 2, LATER);
    expect(conditionOf(flipped, 'Provisioned')?.lastTransitionTime).toBe('2026-01-01T00:01:00Z');
  });

  it('leaves the other conditions as they are', () => {
    const both = withCondition(before, 'Healthy', say('True', 'ProbeSucceeded'), 1, AT);
    expect(withCondition(both, 'Provisioned', say('True', 'Created'), 1, LATER).map(({ type }) => type)).toEqual([
      'Provisioned',
      'Healthy',
    ]);
  });
});

describe('phaseOf', () => {
  const state = (provisioned?: Statement, healthy?: Statement): Condition[] => {
    const first = provisioned ? withCondition(undefined, 'Provisioned', provisioned, 1, AT) : [];
    return healthy ? withCondition(first, 'Healthy', healthy, 1, AT) : first;
  };
  const up = say('True', 'Created');

  it.each<[string, Condition[]]>([
    ['Pending', state()],
    ['Pending', state(say('False', 'QuotaExceeded'))],
    ['Pending', state(say('False', 'CloudInitError'))],
    ['Provisioning', state(say('False', 'Provisioning'))],
    ['Provisioning', state(say('False', 'TransientError'))],
    ['Replacing', state(say('False', 'Replacing'))],
    ['Replacing', state(say('False', 'Stopped'))],
    ['Failed', state(say('False', 'PermanentError'))],
    ['Provisioned', state(up)],
    ['Provisioned', state(up, say('Unknown', 'NotProbed'))],
    ['Ready', state(up, say('True', 'ProbeSucceeded'))],
    ['Ready', state(say('True', 'TransientError'), say('True', 'ProbeSucceeded'))],
    ['Unhealthy', state(up, say('False', 'ProbeFailed'))],
    ['Replacing', state(say('False', 'Replacing'), say('True', 'ProbeSucceeded'))],
  ])('%s is %j', (phase, conditions) => {
    expect(phaseOf(conditions, false)).toBe(phase);
    expect(phaseOf(conditions, true)).toBe('Deleting');
  });
});
