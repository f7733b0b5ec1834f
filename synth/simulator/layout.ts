import type { Calculation } from "../tasks/calculations.ts";

/** Steps of a clean run of planner–solver–verifier: two per calculation, a check after every second but the last, the final check. */
export function lengthOf(calculations: readonly Calculation[]): number {
  return 2 * calculations.length + Math.floor((calculations.length - 1) / 2) + 1;
}
