import seedrandom from "seedrandom";

/** A seeded stream of random draws. Two streams with different names are independent. */
export interface RandomStream {
  /** Uniform in [0, 1). */
  next(): number;
  /** Uniform integer in [0, n). */
  int(n: number): number;
  /** True with probability p. */
  chance(p: number): boolean;
  /** One element, uniformly. @throws RangeError on an empty list. */
  pick<T>(items: readonly T[]): T;
  /** A shuffled copy (Fisher–Yates). */
  shuffle<T>(items: readonly T[]): T[];
  /** Standard normal (Box–Muller). */
  normal(): number;
}

/**
 * The stream of that name under a seed. Every random choice draws from a stream named after what it decides
 * (`stream(seed, "inject", trajectoryId)`), so results depend neither on order nor on concurrency.
 */
export function stream(seed: number | string, ...name: readonly (string | number)[]): RandomStream {
  const next = seedrandom.alea(JSON.stringify([seed, ...name]));
  const int = (n: number): number => Math.floor(next() * n);
  return {
    next,
    int,
    chance: (p) => next() < p,
    pick: (items) => {
      const item = items[int(items.length)];
      if (item === undefined) throw new RangeError("pick from an empty list");
      return item;
    },
    shuffle: (items) => {
      const copy = [...items];
      for (let i = copy.length - 1; i > 0; i--) {
        const j = int(i + 1);
        const a = copy[i];
        const b = copy[j];
        if (a !== undefined && b !== undefined) {
          copy[i] = b;
          copy[j] = a;
        }
      }
      return copy;
    },
    normal: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
  };
}

/** A 31-bit integer drawn from the stream of that name: a seed to hand to a model server. */
export function derivedSeed(seed: number | string, ...name: readonly (string | number)[]): number {
  return stream(seed, ...name).int(2 ** 31);
}
