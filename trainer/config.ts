import { z } from "zod";
import { sha256 } from "../src/checksum.ts";
import { engineSchema, samplingSchema, serversSchema } from "./engine-config.ts";
import { clusterSchema } from "./launch/cluster-config.ts";

const positive = z.number().positive();
const count = z.number().int().positive();
const fraction = z.number().min(0).max(1);

/** Which labels of a trajectory may teach: by verdict of the search, or by where the label comes from. */
export const labelKindSchema = z.enum([
  "earliest-confirmed",
  "decisive-earlier-undecided",
  "first-flip",
  "injection",
  "human",
  "imported",
]);
export type LabelKind = z.infer<typeof labelKindSchema>;

export const optimizerSchema = z.strictObject({
  beta1: fraction.default(0.9).describe("Adam's decay of the first moment"),
  beta2: fraction.default(0.999).describe("Adam's decay of the second moment"),
  epsilon: positive.default(1e-8).describe("Adam's ε"),
  weightDecay: z.number().nonnegative().default(0).describe("decoupled weight decay"),
  maxGradNorm: positive.default(1).describe("global gradient norm above which the gradient is scaled down"),
});

/** Settings of a learning rate over a run; shared by GRPO and the cross-entropy warm start. */
export const learningRateShape = {
  warmup: z.number().int().nonnegative().default(0).describe("steps over which the learning rate rises linearly"),
  decay: z.enum(["constant", "linear", "cosine"]).default("constant").describe("how the learning rate falls"),
  decayFloor: fraction.default(0.1).describe("the learning rate never falls below this fraction"),
};

/** Settings of checkpoints; they may change between a run and its continuation. */
export const checkpointShape = {
  checkpointEvery: count.default(20).describe("steps between checkpoints"),
  keepCheckpoints: count.default(2).describe("newest checkpoints kept; the best one is kept besides"),
};

/** Which records teach and what the policy sees of them. */
export const exampleShape = {
  labels: z
    .array(labelKindSchema)
    .min(1)
    .default(["earliest-confirmed", "injection"])
    .describe("which labels teach, in order of preference"),
  withReference: z.boolean().default(true).describe('the prompt may hold the reference answer (the paper\'s "w/ G")'),
};

/** GRPO without KL for a failure tracer (§4.2, §5.1). Values without a source in the paper are documented defaults. */
export const trainConfigSchema = z.strictObject({
  steps: count.describe("training steps S; not given in the paper, so there is no default"),
  seed: z.number().int().default(0).describe("seed of every random stream of the run"),
  B0: positive.max(1).default(0.2).describe("clip bound at the start; not given in the paper, documented default"),
  groupSize: count.min(2).default(8).describe("completions per prompt n (paper: 8)"),
  promptsPerStep: count.default(32).describe("prompts per step (paper: 32)"),
  minibatches: count.default(2).describe("updates per batch and epoch; with one update per batch the clip never acts"),
  epochsPerBatch: count.default(1).describe("passes over each batch"),
  learningRate: positive.default(1e-6).describe("learning rate (paper: 1e-6 for Qwen3-8B)"),
  ...learningRateShape,
  optimizer: optimizerSchema.prefault({}).describe("Adam"),
  lambda: fraction.default(0.5).describe("weight λ of the step reward against the agent reward (paper: .5)"),
  sigma: positive.default(1).describe("width σ of the step reward's kernel, in steps (paper: 1)"),
  temperature: z
    .literal(1, "rollouts are sampled at temperature 1: any other makes the sampler's probabilities not the policy's")
    .default(1)
    .describe("temperature of rollouts; only 1"),
  topP: z
    .literal(1, "truncated sampling renormalises log-probabilities and biases every ratio: only top_p 1")
    .default(1)
    .describe("nucleus of rollouts; only 1 (untruncated)"),
  aggregation: z
    .enum(["token-sum", "token-mean", "sequence-mean"])
    .default("token-mean")
    .describe("how token losses become one number"),
  normalizeStd: z.boolean().default(true).describe("divide advantages by the group's standard deviation"),
  deadGroups: z
    .enum(["skip", "keep", "resample"])
    .default("skip")
    .describe("groups whose rewards are all equal: left out, kept in the denominators, or replaced by further prompts"),
  resampleRounds: count.default(2).describe("rounds of further prompts with deadGroups: resample"),
  truncated: z
    .enum(["mask", "keep", "penalise"])
    .default("keep")
    .describe(
      "completions cut at the length limit: out of baseline, loss and denominators; trained as they are; or with a lower reward",
    ),
  truncationPenalty: z.number().nonnegative().default(0.1).describe("taken off the reward with truncated: penalise"),
  oldLogprobs: z
    .enum(["auto", "sampler", "engine"])
    .default("auto")
    .describe(
      "log-probabilities under the sampling policy; auto recomputes them where another program sampled, and takes the sampler's with overlap: the engine's weights have moved on by then",
    ),
  overlap: z
    .strictObject({
      staleness: count.describe(
        "steps at most between the policy that samples a batch and the one that the batch updates: the sampler gets new weights every so many steps (1: one-step off-policy)",
      ),
    })
    .optional()
    .describe(
      "sample the next batches while a step updates; off by default: every batch is sampled by the newest policy",
    ),
  ratioTolerance: positive.default(0.02).describe("first batch: how far the mean ratio may be from 1"),
  entropyFloor: z.number().nonnegative().default(0.01).describe("nats per token below which a step warns"),
  evalEvery: count.default(20).describe("steps between evaluations on the held-out split"),
  ...checkpointShape,
  engine: engineSchema,
  sampling: samplingSchema,
  servers: serversSchema,
  cluster: clusterSchema.optional(),
  stop: z
    .strictObject({
      collapseReward: z.number().nonnegative().default(0.01).describe("mean reward that counts as collapsed"),
      collapseSteps: count.default(20).describe("steps in a row at or below it that stop the run"),
    })
    .prefault({})
    .describe("when to give up"),
  ...exampleShape,
});
export type TrainConfig = z.infer<typeof trainConfigSchema>;

/** Settings that may change between a run and its continuation without changing what it computes. */
const OPERATIONAL: ReadonlySet<string> = new Set([...Object.keys(checkpointShape), "servers", "cluster"]);

/** Identifies the settings of a run: a folder is only resumed with the same ones. Keys are in the schema's order. */
export function configHash(config: Readonly<Record<string, unknown>>): string {
  const kept = Object.entries(config).filter(([key]) => !OPERATIONAL.has(key));
  return sha256(JSON.stringify(kept));
}
