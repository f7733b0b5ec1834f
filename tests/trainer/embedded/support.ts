import { readFileSync } from "node:fs";
import { z } from "zod";
import { drawFailedRun, type FailedRun } from "../../../scripts/embedded/chains.ts";
import { stream } from "../../../src/random.ts";
import type { Task, Trajectory } from "../../../src/trajectory/schema.ts";
import type { ModelShape } from "../../../trainer/engines/embedded/manifest.ts";
import type { Completion, OptimizerSettings, TrainingGroup } from "../../../trainer/engines/engine.ts";

const numbers = z.array(z.number());
const lossCase = z.object({
  groups: z.array(
    z.object({
      prompt: numbers,
      promptWeight: z.number(),
      completions: z.array(
        z.object({ tokens: numbers, weights: numbers, advantage: z.number(), oldLogprobs: numbers.optional() }),
      ),
    }),
  ),
  clip: z.number().nullable(),
  loss: z.number(),
  gradNorm: z.number(),
  gradient: z.object({ indices: numbers, values: numbers }),
});
const fixtureSchema = z.object({
  weights: z.object({ count: z.number(), sum: z.number(), first: numbers, last: numbers }),
  clippedSurrogate: lossCase,
  crossEntropy: lossCase.extend({ logprobs: z.array(numbers) }),
  adamW: z.object({
    start: numbers,
    gradients: z.array(numbers),
    settings: z.custom<OptimizerSettings>(),
    gradNorms: numbers,
    weights: z.array(numbers),
  }),
});

/** What torch computed; made by scripts/embedded/parity.py. */
export const fixture = fixtureSchema.parse(JSON.parse(readFileSync(new URL("parity.json", import.meta.url), "utf8")));

export type FixtureGroups = z.infer<typeof lossCase>["groups"];

/** The fixture's groups as the engine takes them. */
export function trainingGroups(groups: FixtureGroups): TrainingGroup[] {
  return groups.map((group) => ({
    ...group,
    completions: group.completions.map(({ oldLogprobs, ...rest }) => ({
      ...rest,
      ...(oldLogprobs && { oldLogprobs }),
    })),
  }));
}

/** A number of [0, 1) for an index, as scripts/embedded/parity.py computes it. */
function unit(index: number): number {
  let x = (Math.imul(index, 2654435761) + 12345) >>> 0;
  x = (x ^ (x >>> 15)) >>> 0;
  x = Math.imul(x, 2246822519) >>> 0;
  x = (x ^ (x >>> 13)) >>> 0;
  return x / 4294967296;
}

/** The weights of the fixture: a formula over their index. */
export function formulaWeights(model: ModelShape): Float32Array {
  const values: number[] = [];
  for (const { name, shape } of model.parameters) {
    const size = shape.reduce((a, b) => a * b, 1);
    const fan = name === "embedding" || name === "position" ? shape[1]! : shape[0]!;
    for (let i = 0; i < size; i += 1) {
      const u = 2 * unit(values.length) - 1;
      values.push(name.includes("norm") ? 1 + 0.2 * u : name.includes("bias") ? 0.1 * u : u * Math.sqrt(2 / fan));
    }
  }
  return Float32Array.from(values);
}

/** Failed runs of the generator, the same for a name. */
export function failedRuns(name: string, count: number, split: "train" | "held-out" = "train"): FailedRun[] {
  const random = stream("tests", name);
  return Array.from({ length: count }, () => drawFailedRun(random, split));
}

/** The same with their labels and reference solutions, as training takes them. */
export function labelledRuns(name: string, count: number): Trajectory[] {
  return failedRuns(name, count).map(({ trajectory, decisive }) => ({
    ...trajectory,
    task: withSolution(trajectory.task),
    labels: [{ ...decisive, source: "injection" }],
  }));
}

/** The reference solution in GSM8K's notation, as the task set of chains writes it: what the prompt is made from. */
function withSolution(task: Task): Task {
  const calculations = z.array(z.string()).parse(task.extra?.calculations);
  let value = 0;
  const lines = calculations.map((calculation) => {
    const [, operator = "", operand = ""] = /([-+*/]) (\d+)$/u.exec(calculation) ?? [];
    const left = calculation.startsWith("previous") ? value : Number(calculation.split(" ")[0]);
    const right = Number(operand);
    value = { "+": left + right, "-": left - right, "*": left * right }[operator] ?? left / right;
    return `<<${left}${operator}${right}=${value}>>${value}`;
  });
  return { ...task, referenceSolution: lines.join("\n") };
}

/** Sampled completions as groups to train on, with made-up advantages. */
export function asGroups(
  prompts: readonly (readonly number[])[],
  samples: readonly (readonly Completion[])[],
): TrainingGroup[] {
  return prompts.map((prompt, p) => ({
    prompt,
    completions: samples[p]!.map(({ tokens, logprobs }, k) => ({
      tokens,
      weights: tokens.map(() => 0.001),
      advantage: Math.sin(8 * p + k),
      oldLogprobs: logprobs,
    })),
  }));
}

export const ADAM: OptimizerSettings = {
  learningRate: 1e-3,
  beta1: 0.9,
  beta2: 0.98,
  epsilon: 1e-8,
  weightDecay: 0,
  maxGradNorm: 1,
};

/** Largest absolute difference between two lists of one length. */
export function largestDifference(a: readonly number[], b: readonly number[]): number {
  if (a.length !== b.length) throw new Error(`${a.length} numbers against ${b.length}`);
  return a.reduce((largest, x, i) => Math.max(largest, Math.abs(x - b[i]!)), 0);
}
