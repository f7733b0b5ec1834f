import { createHash } from "node:crypto";
import { isError, type RootstepError } from "../src/errors.ts";
import { methodView, viewAsTrajectory } from "../src/methods/view.ts";
import { stream } from "../src/random.ts";
import { inconsistencies, isFatal } from "../src/trajectory/invariants.ts";
import type { Label, Trajectory } from "../src/trajectory/schema.ts";
import { heldOutGroups } from "../src/trajectory/split.ts";
import type { LabelKind } from "./config.ts";
import type { TracerCodec } from "./engines/engine.ts";

/** A failed run with the label that teaches and the prompt the policy sees. */
export interface TrainingExample {
  readonly trajectory: Trajectory;
  readonly label: Label;
  /** Prompt tokens. */
  readonly prompt: readonly number[];
}

/** A record that cannot teach, and why. */
export interface RefusedRecord {
  readonly id: string;
  readonly reason: "no-label" | "run-succeeded" | "inconsistent" | "vocabulary" | "prompt-too-long";
  readonly detail: string;
}

export interface ExampleOptions {
  readonly labels: readonly LabelKind[];
  /** Longest prompt the engine takes, in tokens. */
  readonly maxPrompt: number;
  /** Whether the prompt may hold the task's reference answer and solution (the paper's "with G"). */
  readonly withReference: boolean;
}

export interface TrainingData {
  readonly examples: readonly TrainingExample[];
  readonly refused: readonly RefusedRecord[];
  /** Refused records by reason. */
  readonly refusedCounts: Readonly<Record<string, number>>;
}

/** The label that counts: the first kind in the list that one of the trajectory's labels is of. */
export function teachingLabel(trajectory: Trajectory, kinds: readonly LabelKind[]): Label | undefined {
  for (const kind of kinds) {
    const label = trajectory.labels.find((candidate) => candidate.verdict === kind || candidate.source === kind);
    if (label !== undefined) return label;
  }
  return undefined;
}

/** Turns trajectories into examples. What cannot be used is listed with its reason, never dropped in silence. */
export function buildExamples(
  trajectories: readonly Trajectory[],
  codec: TracerCodec,
  options: ExampleOptions,
): TrainingData {
  const examples: TrainingExample[] = [];
  const refused: RefusedRecord[] = [];
  for (const trajectory of trajectories) {
    const built = buildExample(trajectory, codec, options);
    if ("reason" in built) refused.push(built);
    else examples.push(built);
  }
  const refusedCounts: Record<string, number> = {};
  for (const { reason } of refused) refusedCounts[reason] = (refusedCounts[reason] ?? 0) + 1;
  return { examples, refused, refusedCounts };
}

function buildExample(
  trajectory: Trajectory,
  codec: TracerCodec,
  options: ExampleOptions,
): TrainingExample | RefusedRecord {
  const { id } = trajectory;
  if (trajectory.outcome.success) return { id, reason: "run-succeeded", detail: "there is no failure to attribute" };
  const label = teachingLabel(trajectory, options.labels);
  if (label === undefined) return { id, reason: "no-label", detail: `no label of kind ${options.labels.join(", ")}` };
  const problem = inconsistencies({ ...trajectory, labels: [label] }).find(isFatal);
  if (problem !== undefined) return { id, reason: "inconsistent", detail: problem.message };
  const prompt = encode(trajectory, codec, options.withReference);
  if ("code" in prompt) return { id, reason: "vocabulary", detail: prompt.what };
  if (prompt.length > options.maxPrompt) {
    const detail = `prompt of ${prompt.length} tokens, the engine takes ${options.maxPrompt}`;
    return { id, reason: "prompt-too-long", detail };
  }
  return { trajectory, label, prompt };
}

/** The codec reads what a method sees in `eval`: the prompts are the same there, and no label can leak into one. */
function encode(trajectory: Trajectory, codec: TracerCodec, withReference: boolean): readonly number[] | RootstepError {
  try {
    return codec.encodePrompt(viewAsTrajectory(methodView(trajectory, { withReference })));
  } catch (error) {
    if (isError(error, "VOCABULARY")) return error;
    throw error;
  }
}

/**
 * Splits examples by task group, so that no task is on both sides. The side of a group depends on its name and the
 * seed alone: adding records moves none of the others.
 */
export function splitByGroup(
  examples: readonly TrainingExample[],
  options: { readonly heldOutFraction: number; readonly seed: number },
): { readonly train: readonly TrainingExample[]; readonly heldOut: readonly TrainingExample[] } {
  const groupOf = ({ trajectory }: TrainingExample): string => trajectory.task.groupId;
  const { heldOutFraction: share, seed } = options;
  const groups = heldOutGroups(examples.map(groupOf), { share, seed, name: "held-out", cut: "stable" });
  const isHeldOut = (example: TrainingExample): boolean => groups.has(groupOf(example));
  return {
    train: examples.filter((example) => !isHeldOut(example)),
    heldOut: examples.filter(isHeldOut),
  };
}

/**
 * The next n examples of the endless sequence epoch 0, epoch 1, …, each a shuffle of its own; `position` counts the
 * examples drawn since the run began and is all that a resumed run needs to know.
 */
export function drawExamples(
  examples: readonly TrainingExample[],
  draw: { readonly seed: number; readonly position: number; readonly n: number },
): TrainingExample[] {
  const drawn: TrainingExample[] = [];
  let position = draw.position;
  while (drawn.length < draw.n && examples.length > 0) {
    const epoch = Math.floor(position / examples.length);
    const order = stream(draw.seed, "order", epoch).shuffle(examples);
    const from = position % examples.length;
    const part = order.slice(from, from + draw.n - drawn.length);
    drawn.push(...part);
    position += part.length;
  }
  return drawn;
}

/** Identifies the data of a run: a folder is only resumed with the same examples in the same order. */
export function dataHash(examples: readonly TrainingExample[], heldOut: readonly TrainingExample[]): string {
  const hash = createHash("sha256");
  for (const side of [examples, heldOut]) {
    hash.update(`${side.length}\n`);
    for (const { trajectory, label, prompt } of side) {
      hash.update(`${JSON.stringify([trajectory.id, label.agent, label.step, prompt])}\n`);
    }
  }
  return hash.digest("hex");
}
