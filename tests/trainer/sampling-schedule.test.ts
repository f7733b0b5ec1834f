import { describe, expect, it } from "vitest";
import { batchesSampledAt, isSyncPoint } from "../../trainer/sampling-schedule.ts";

interface Row {
  readonly steps: number;
  readonly evalEvery: number;
  readonly k: number;
  /** The steps done behind the policy that samples batch 0, 1, 2, … */
  readonly sampledAfter: readonly number[];
}

/** By hand, from the definition. */
const rows: readonly Row[] = [
  { steps: 5, evalEvery: 100, k: 0, sampledAfter: [0, 1, 2, 3, 4] },
  { steps: 5, evalEvery: 100, k: 1, sampledAfter: [0, 0, 1, 2, 3] },
  { steps: 7, evalEvery: 100, k: 2, sampledAfter: [0, 0, 0, 2, 2, 4, 4] },
  // An evaluation needs the newest weights: the sampler gets them, and goes on with them.
  { steps: 8, evalEvery: 3, k: 2, sampledAfter: [0, 0, 0, 2, 3, 4, 4, 6] },
  { steps: 6, evalEvery: 100, k: 4, sampledAfter: [0, 0, 0, 0, 0, 4] },
  { steps: 1, evalEvery: 1, k: 3, sampledAfter: [0] },
];

const configOf = ({ steps, evalEvery, k }: Omit<Row, "sampledAfter">) => ({
  steps,
  evalEvery,
  ...(k > 0 && { overlap: { staleness: k } }),
});

/** Walks through a run as the loop does. */
function walk(row: Omit<Row, "sampledAfter">): number[] {
  const config = configOf(row);
  const sampledAfter: number[] = [];
  for (let done = 0; done < row.steps; done++) {
    if (!isSyncPoint(config, done)) continue;
    const { from, to } = batchesSampledAt(config, done);
    expect(from).toBe(sampledAfter.length);
    for (let step = from; step < to; step++) sampledAfter.push(done);
  }
  return sampledAfter;
}

describe("which policy samples which batch", () => {
  for (const row of rows) {
    it(`with staleness ${row.k} over ${row.steps} steps, evaluated every ${row.evalEvery}`, () => {
      expect(walk(row)).toEqual(row.sampledAfter);
    });
  }

  it("is never more steps behind than allowed, and every batch is sampled once", () => {
    for (let steps = 1; steps <= 12; steps++) {
      for (let evalEvery = 1; evalEvery <= 6; evalEvery++) {
        for (let k = 0; k <= 5; k++) {
          const sampledAfter = walk({ steps, evalEvery, k });
          expect(sampledAfter).toHaveLength(steps);
          sampledAfter.forEach((done, step) => {
            expect(step - done).toBeLessThanOrEqual(k);
            expect(step - done).toBeGreaterThanOrEqual(k === 0 || step === 0 ? 0 : 1);
          });
        }
      }
    }
  });
});
