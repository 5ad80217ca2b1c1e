import { expect, test } from 'vitest';
import { createTimeline } from '../../fakes/compute-engine/timeline.ts';

test('nothing is lost that becomes due while the Compute Engine for tests looks at the clock', () => {
  // For as many looks at the clock as come before the second step is due.
  for (let looks = 0; looks < 10; looks += 1) {
    let time = 0;
    const timeline = createTimeline(() => (++time > looks ? time : 0));
    const happened: string[] = [];
    timeline.after(0, () => void happened.push('first'));
    timeline.after(1, () => void happened.push('second'));
    for (let settled = 0; settled < 30; settled += 1) timeline.settle();
    expect(happened).toContain('second');
  }
});
