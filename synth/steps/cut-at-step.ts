import { RootstepError } from "../../src/errors.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import type { ProxyRecording } from "../proxy/tape-recordings.ts";

/** Where to cut a tape for a step of its trajectory. */
export interface StepCut {
  /** The call in whose place the action stands; for the control the first that is live (the tape's length if none is). */
  readonly at: number;
  /** The calls from the tape. */
  readonly prefix: ReadonlySet<number>;
}

type Steps = Pick<Trajectory, "id" | "steps">;

/**
 * For the corrected action at step t: the calls of all steps before it come from the tape, the action stands in the place
 * of its first call. In a step of several calls it so takes the place of them all: an answer without tool calls ends the
 * turn.
 *
 * Steps stand in the order in which they were answered, calls are numbered as they were asked; where agents run side by
 * side the two orders differ, so the prefix is a set.
 *
 * @param calls of the tape, retries folded
 * @throws RootstepError USAGE for a step that is not there, or has no calls (an import from elsewhere)
 */
export function cutAtStep(trajectory: Steps, step: number, calls: readonly ProxyRecording[]): StepCut {
  const [at] = callsOf(trajectory, step);
  return { at, prefix: callsBefore(trajectory, step, calls) };
}

/**
 * For the control at step t: the calls of all steps up to it come from the tape, and whatever follows is live.
 * @throws RootstepError USAGE
 */
export function cutAfterStep(trajectory: Steps, step: number, calls: readonly ProxyRecording[]): StepCut {
  callsOf(trajectory, step);
  const prefix = callsBefore(trajectory, step + 1, calls);
  let at = 0;
  while (prefix.has(at)) at++;
  return { at, prefix };
}

/** The calls of the steps before `end`, and of those in no step (embeddings) what was answered before the first later one. */
function callsBefore({ steps }: Steps, end: number, calls: readonly ProxyRecording[]): ReadonlySet<number> {
  const numbersOf = (from: number, to?: number): number[] =>
    steps.slice(from, to).flatMap(({ callIds }) => callIds.map(Number));
  const [before, later] = [new Set(numbersOf(0, end)), new Set(numbersOf(end))];
  const answeredAt = ({ call }: ProxyRecording): number => call.askedAt + call.tookMs;
  let first = Number.POSITIVE_INFINITY;
  for (const recording of calls) if (later.has(recording.index)) first = Math.min(first, answeredAt(recording));
  for (const recording of calls) {
    if (!later.has(recording.index) && answeredAt(recording) < first) before.add(recording.index);
  }
  return before;
}

/** The numbers of a step's calls, the first one first. */
function callsOf({ steps, id }: Steps, step: number): readonly [number, ...number[]] {
  const found = steps[step];
  if (found === undefined) {
    throw new RootstepError("USAGE", { what: `there is no step ${step}: ${id} has steps 0 to ${steps.length - 1}` });
  }
  const [first, ...rest] = found.callIds.map(Number).sort((a, b) => a - b);
  if (first !== undefined) return [first, ...rest];
  throw new RootstepError("USAGE", {
    what: `step ${step} of ${id} names no call of a tape`,
    hint: "Only trajectories made from a tape can be cut at a step.",
  });
}
