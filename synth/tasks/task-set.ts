import type { Outcome, Task } from "../../src/trajectory/schema.ts";
import type { RunsCode } from "../sandbox/sandbox.ts";

export interface LoadOptions {
  /** Matters to generated sets only. */
  readonly seed: number;
  readonly limit: number;
  /** The user's own copy of the data, a file or a folder; sets that ship theirs read that one without it. */
  readonly path?: string;
  /** Told of each problem that is left out because its checker cannot work here. */
  readonly onRefused?: (problem: RefusedProblem) => void;
}

export interface RefusedProblem {
  readonly id: string;
  readonly why: string;
}

/** A set of problems with a checker: where runs come from and what decides Ω(τ). */
export interface TaskSet extends RunsCode<TaskSet> {
  readonly id: string;
  readonly title: string;
  /** Licence and origin, for the dataset card. */
  readonly source: string;
  readonly licence: string;
  /**
   * The tasks in a fixed order.
   * @throws RootstepError DATA_NOT_SHIPPED where the set needs a path and has none, SANDBOX_UNAVAILABLE, FILE_…, DATA_…
   */
  load(options: LoadOptions): Promise<readonly Task[]>;
  /**
   * Ω: does the answer solve the task? Whatever an answer says is judged, never an error.
   * @throws RootstepError CHECKER_FAILED, SANDBOX_… where there is no verdict
   */
  check(task: Task, answer: string | undefined): Outcome | Promise<Outcome>;
}
