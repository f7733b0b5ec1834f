import { sameAgent } from "./agent-name.ts";
import type { Label, Trajectory } from "./schema.ts";

/** A fact about a trajectory that does not fit; reported, never mended silently. */
export interface Inconsistency {
  readonly kind: "index-gap" | "label-outside" | "label-not-speaker" | "empty-step" | "no-steps";
  /** JSON path inside the record. */
  readonly path: string;
  readonly message: string;
}

/** The label as an inconsistency with its log, or undefined if it fits. */
export function labelInconsistency(trajectory: Trajectory, label: Label, path = "labels"): Inconsistency | undefined {
  const step = trajectory.steps[label.step];
  if (step === undefined) {
    return {
      kind: "label-outside",
      path: `${path}.step`,
      message: `label names step ${label.step}; the log has steps 0–${trajectory.steps.length - 1}`,
    };
  }
  if (sameAgent(step.agent, label.agent)) return undefined;
  return {
    kind: "label-not-speaker",
    path: `${path}.agent`,
    message: `label blames ${label.agent} at step ${label.step}, where ${step.agent} acts`,
  };
}

/** Everything that does not fit in a parsed trajectory. An empty list means that all invariants hold. */
export function inconsistencies(trajectory: Trajectory): Inconsistency[] {
  const found: Inconsistency[] = [];
  if (trajectory.steps.length === 0) found.push({ kind: "no-steps", path: "steps", message: "the log has no steps" });
  trajectory.steps.forEach((step, position) => {
    if (step.index !== position) {
      found.push({
        kind: "index-gap",
        path: `steps[${position}].index`,
        message: `index ${step.index} at position ${position}`,
      });
    }
    if (step.content.trim() === "" && step.toolCalls.length === 0) {
      found.push({
        kind: "empty-step",
        path: `steps[${position}].content`,
        message: `step ${position} (${step.agent}) is empty`,
      });
    }
  });
  trajectory.labels.forEach((label, position) => {
    const problem = labelInconsistency(trajectory, label, `labels[${position}]`);
    if (problem) found.push(problem);
  });
  return found;
}

/** Inconsistencies that make a record unusable, as against those that are facts worth knowing. */
export function isFatal(problem: Inconsistency): boolean {
  return problem.kind === "index-gap" || problem.kind === "label-outside" || problem.kind === "no-steps";
}
