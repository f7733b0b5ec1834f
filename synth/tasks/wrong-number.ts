import type { RandomStream } from "../../src/random.ts";

/** Another number near by or with a wrong ten; positive where the right one is. */
export function wrongNumber(value: number, random: RandomStream): number {
  const candidates = [1, 2, 3, 10].flatMap((by) => [value + by, value - by]);
  return random.pick(value > 0 ? candidates.filter((candidate) => candidate > 0) : candidates);
}
