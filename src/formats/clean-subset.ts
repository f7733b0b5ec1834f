import { labelInconsistency } from "../trajectory/invariants.ts";
import type { Trajectory } from "../trajectory/schema.ts";

/** What two logs with one history have in common: who said what, in order. */
export function historyKey(trajectory: Trajectory): string {
  return JSON.stringify(trajectory.steps.map((step) => [step.agent, step.role, step.content]));
}

/** Groups of trajectories with one history, in order of first occurrence; histories that occur once are left out. */
export function duplicateHistories(trajectories: readonly Trajectory[]): Trajectory[][] {
  const groups = new Map<string, Trajectory[]>();
  for (const trajectory of trajectories) {
    const key = historyKey(trajectory);
    groups.set(key, [...(groups.get(key) ?? []), trajectory]);
  }
  return [...groups.values()].filter((group) => group.length > 1);
}

/** Labels that do not name the speaker of their step, or no step at all. */
export function hasLabelOffSpeaker(trajectory: Trajectory): boolean {
  return trajectory.labels.some((label) => labelInconsistency(trajectory, label) !== undefined);
}

/**
 * The trajectories whose labels name the speaker of their step and whose history occurs once. Of a history that occurs under
 * several questions every copy is dropped: nothing says to which question it belongs.
 */
export function cleanSubset(trajectories: readonly Trajectory[]): Trajectory[] {
  const doubled = new Set(duplicateHistories(trajectories).flat());
  return trajectories.filter((trajectory) => !hasLabelOffSpeaker(trajectory) && !doubled.has(trajectory));
}
