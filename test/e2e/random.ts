/** A source of chance that one number repeats. */
export interface Random {
  /** Whole, from `from` up to and including `to`. */
  between(from: number, to: number): number;
  pick<T>(items: readonly [T, ...T[]]): T;
}

/** Mulberry32: small, and random enough to choose what happens next. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (from: number, to: number) => from + Math.floor(next() * (to - from + 1));
  return { between, pick: (items) => items[between(0, items.length - 1)] ?? items[0] };
}
