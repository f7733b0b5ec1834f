import type { RandomStream } from "../../../src/random.ts";
import type { Task } from "../../../src/trajectory/schema.ts";
import type { LogEntry } from "./team-prompt.ts";

/** What an agent is asked for, and what stands in the log. */
export interface Turn {
  readonly task: Task;
  readonly agent: string;
  readonly log: readonly LogEntry[];
  /** What the world said before the first turn. */
  readonly opening: readonly string[];
}

/**
 * The rules by which one team plays one kind of task: computed from the log that the agent is shown, so what went wrong
 * upstream carries on. A fallible model (fallible.ts) errs on top of it.
 */
export interface Player {
  /** Steps of a run without an error. */
  length(task: Task): number;
  /** What the agent says when it makes no mistake here. */
  right(turn: Turn): string;
  /** A mistake of the same form in place of `right`; undefined where there is none to make. */
  wrong(turn: Turn, right: string, random: RandomStream): string | undefined;
  /**
   * What the step should have said: the analyzer's correction. It sees what agents said, not what the world answered, and
   * the task's solution.
   */
  correction(turn: Turn): string;
}
