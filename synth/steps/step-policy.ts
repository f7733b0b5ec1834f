import type { Step } from "../../src/trajectory/schema.ts";
import type { AgentCall, RecordedRun } from "./recorded-run.ts";

/** A step before it is written down: who acted, by which calls. */
export interface StepDraft {
  readonly agent: string;
  /** In the order of the run; their answers are what the step says. At least one, and no call in two steps. */
  readonly calls: readonly AgentCall[];
  readonly role?: string | undefined;
  readonly kind?: Step["kind"] | undefined;
  /** In the place of what the calls answered, where the framework's log has it better. */
  readonly content?: string | undefined;
}

/**
 * How the calls of a run become steps. An adapter of a framework whose own log says more brings a policy of its own, under
 * an id of its own, which the trajectory then names: `{ id: "autogen-log", …, steps: (run) => … }`.
 */
export interface StepPolicy {
  /** The name that a trajectory stores. */
  readonly id: string;
  readonly title: string;
  /** Drafts in the order of the run; calls that are in none are left out of the trajectory, and it says how many. */
  steps(run: RecordedRun): readonly StepDraft[];
}
