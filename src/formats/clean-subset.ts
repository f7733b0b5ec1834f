import { labelInconsistency } from "../trajectory/invariants.ts";
import type { Trajectory } from "../trajectory/schema.ts";

/** What two logs with one history have in common: who said what, in order. */
export function historyKey(trajectory: Trajectory): string {
  return JSON.stringify(trajectory.steps.map((step) => [step.agent, step.role, step.content]));
}

/** Groups of trajectories with one history, in order of first occurrence; histories that occur once are left out. */
export function duplicateHistories(trajectories: readonly Trajectory[]): Trajectory[][] {
  const position = new Map(trajectories.map((trajectory, at) => [trajectory, at]));
  const first = ([one]: readonly Trajectory[]): number => (one && position.get(one)) ?? 0;
  // Histories of different size differ: only those of one size are compared in full.
  return several(trajectories, sizeKey)
    .flatMap((alike) => several(alike, historyKey))
    .sort((a, b) => first(a) - first(b));
}

function sizeKey({ steps }: Trajectory): string {
  return `${steps.length} ${steps.reduce((total, { content }) => total + content.length, 0)}`;
}

/** Groups of more than one with the same key. */
function several(trajectories: readonly Trajectory[], keyOf: (trajectory: Trajectory) => string): Trajectory[][] {
  const groups = new Map<string, Trajectory[]>();
  for (const trajectory of trajectories) {
    const key = keyOf(trajectory);
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
