import type { Outcome, Task } from "../../src/trajectory/schema.ts";

/** A set of problems with a checker: where runs come from and what decides Ω(τ). */
export interface TaskSet {
  readonly id: string;
  readonly title: string;
  /** Licence and origin, for the dataset card. */
  readonly source: string;
  readonly licence: string;
  /** The tasks in a fixed order. `seed` matters to generated sets only. */
  load(options: { readonly seed: number; readonly limit: number }): Promise<readonly Task[]>;
  /** Ω: does the answer solve the task? */
  check(task: Task, answer: string | undefined): Outcome;
}
