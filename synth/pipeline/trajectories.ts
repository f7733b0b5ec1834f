import {
  type Label,
  type Outcome,
  type Task,
  TRAJECTORY_SCHEMA_VERSION,
  type Trajectory,
} from "../../src/trajectory/schema.ts";
import type { AgentSystem } from "../systems/system.ts";
import { stepsFromCalls, type TapedCall } from "../tape/tape.ts";

export interface TrajectoryInput {
  readonly id: string;
  readonly task: Task;
  readonly system: AgentSystem;
  readonly calls: readonly TapedCall[];
  readonly outcome: Outcome;
  readonly labels: readonly Label[];
  readonly model: string;
  readonly simulated: boolean;
}

/** A run as a dataset record. Injected and natural failures have the same form: only the label says where it comes from. */
export function trajectoryOf(input: TrajectoryInput): Trajectory {
  return {
    schemaVersion: TRAJECTORY_SCHEMA_VERSION,
    id: input.id,
    task: input.task,
    system: input.system.id,
    stepPolicy: input.system.stepPolicy,
    steps: stepsFromCalls(input.calls),
    outcome: input.outcome,
    labels: [...input.labels],
    provenance: { kind: "recorded", model: input.model, simulated: input.simulated, conversions: [] },
  };
}
