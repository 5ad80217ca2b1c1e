/** What a person sees while the sandbox works: finished lines, and for what takes long, that it still goes on. */
export interface Progress {
  line(text: string): void;
  /** Begins something that may take a while. With `announce`, that line is printed at once. */
  step(label: string, options?: { announce?: string }): Step;
  /** Removes the live line; call before the process ends. */
  close(): void;
}

export interface Step {
  /** What it is at just now, shown beside the elapsed time. */
  note(text: string): void;
  done(text?: string): void;
  failed(): void;
}

interface Running {
  label: string;
  note: string;
  since: number;
}

const liveEveryMs = 250;
const plainEveryMs = 15_000;

/** On a terminal one live line shows everything that runs; elsewhere each long step gets a line every 15 s. */
export function createProgress(out: NodeJS.WriteStream = process.stdout): Progress {
  const steps = new Set<Running>();
  const live = out.isTTY === true;
  let timer: NodeJS.Timeout | undefined;
  let drawn = false;

  const erase = () => {
    if (drawn) out.write('\r\u001b[K');
    drawn = false;
  };
  const line = (text: string) => {
    erase();
    out.write(`${text}\n`);
  };
  const describe = (step: Running) =>
    `${step.label} … ${elapsed(Date.now() - step.since)}${step.note ? `, ${step.note}` : ''}`;
  const tick = () => {
    if (!live) {
      for (const step of steps) line(describe(step));
      return;
    }
    erase();
    out.write(
      [...steps]
        .map(describe)
        .join(' · ')
        .slice(0, Math.max(20, (out.columns || 80) - 1)),
    );
    drawn = true;
  };
  const end = (step: Running) => {
    steps.delete(step);
    if (steps.size === 0) {
      clearInterval(timer);
      timer = undefined;
      erase();
    }
  };

  return {
    line,
    step(label, { announce } = {}) {
      const step: Running = { label, note: '', since: Date.now() };
      if (announce) line(announce);
      steps.add(step);
      timer ??= setInterval(tick, live ? liveEveryMs : plainEveryMs).unref();
      return {
        note(text) {
          step.note = text;
        },
        done(text) {
          end(step);
          line(text ?? `${label}: done in ${elapsed(Date.now() - step.since)}`);
        },
        failed() {
          end(step);
        },
      };
    },
    close() {
      clearInterval(timer);
      erase();
    },
  };
}

/** 0.4s, 12s, 1m20s. */
export function elapsed(ms: number): string {
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, '0')}s`;
}
