/** Things that come about by themselves, each at its time, in order. Nothing runs between requests: no timers. */
export interface Timeline {
  after(millis: number, happen: () => void): void;
  /** Lets happen what is due by now. */
  settle(): void;
}

export function createTimeline(now: () => number): Timeline {
  let steps: { at: number; happen: () => void }[] = [];
  return {
    after: (millis, happen) => void steps.push({ at: now() + millis, happen }),
    settle() {
      for (;;) {
        // Read once: what becomes due between two looks at the clock would be in neither half.
        const time = now();
        const due = steps.filter(({ at }) => at <= time).sort((a, b) => a.at - b.at);
        if (due.length === 0) return;
        steps = steps.filter(({ at }) => at > time);
        // One thing may lead to the next, and that be due as well.
        for (const { happen } of due) happen();
      }
    },
  };
}
