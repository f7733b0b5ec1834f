/**
 * Makes data/embedded/warm-start.bin and what the manifest says of it.  usage: npx tsx scripts/embedded/warm-start.ts
 *
 * Cross-entropy on generated chains with imperfect labels (see README.md): the start knows how to recompute a chain, but calls bad
 * what its labels call bad. Reinforcement from verified labels then has something to teach.
 */
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { shippedPath } from "../../src/package-root.ts";
import { stream } from "../../src/random.ts";
import { type EmbeddedEngine, openEmbeddedEngine } from "../../trainer/engines/embedded/engine.ts";
import { manifestSchema, readManifest } from "../../trainer/engines/embedded/manifest.ts";
import { drawFailedRun, imperfectLabel } from "./chains.ts";
import { initialWeights } from "./initial-weights.ts";
import { floors, type Measured, measure, runSet, show } from "./measure.ts";

const FILE = "warm-start.bin";

const { values: flags } = parseArgs({
  options: {
    steps: { type: "string", default: "4000" },
    prompts: { type: "string", default: "64" },
    "learning-rate": { type: "string", default: "3e-3" },
    "label-accuracy": { type: "string", default: "0.36" },
    seed: { type: "string", default: "1" },
    threads: { type: "string", default: "1" },
    /** Writes the weights there and leaves data/embedded alone. */
    trial: { type: "string" },
  },
});

const recipe = {
  steps: Number(flags.steps),
  promptsPerStep: Number(flags.prompts),
  learningRate: Number(flags["learning-rate"]),
  warmupSteps: 50,
  /** The learning rate falls linearly over this last share of the steps. */
  annealedShare: 0.4,
  promptLossShare: 0.3,
  labelAccuracy: Number(flags["label-accuracy"]),
  seed: Number(flags.seed),
  optimizer: { beta1: 0.9, beta2: 0.98, epsilon: 1e-8, weightDecay: 0, maxGradNorm: 1 },
} as const;

/** Typical lengths: they only set the scale of the two losses. */
const COMPLETION_TOKENS = 18;
const PROMPT_TOKENS = 32;

async function train(engine: EmbeddedEngine): Promise<void> {
  const { promptsPerStep, steps, annealedShare, labelAccuracy } = recipe;
  const random = stream(recipe.seed, "warm start");
  const started = performance.now();
  let loss = 0;
  for (let step = 1; step <= steps; step += 1) {
    const groups = Array.from({ length: promptsPerStep }, () => {
      const run = drawFailedRun(random, "train");
      const tokens = engine.codec.encodeCompletion(run.trajectory, imperfectLabel(run, labelAccuracy, random));
      const weight = 1 / (promptsPerStep * COMPLETION_TOKENS);
      return {
        prompt: engine.codec.encodePrompt(run.trajectory),
        completions: [{ tokens, weights: tokens.map(() => weight), advantage: 1 }],
        promptWeight: recipe.promptLossShare / (promptsPerStep * PROMPT_TOKENS),
      };
    });
    loss += (await engine.forwardBackward(groups, { kind: "cross-entropy" })).loss;
    const rise = Math.min(1, step / recipe.warmupSteps);
    const fall = Math.max(0.02, Math.min(1, (1 - (step - 1) / steps) / annealedShare));
    await engine.optimStep({ ...recipe.optimizer, learningRate: recipe.learningRate * rise * fall });
    if (step % 100 === 0) {
      const seconds = Math.round((performance.now() - started) / 1000);
      const line = `step ${step} ${seconds} s loss ${(loss / 100).toFixed(4)}`;
      loss = 0;
      console.log(step % 500 === 0 ? `${line} sampled ${show(await measure(engine, development, 1))}` : line);
    }
  }
}

const development = runSet("development", "held-out", 500);
const folder = shippedPath("data", "embedded");
const { model } = await readManifest(folder);
const engine = await openEmbeddedEngine({
  weights: initialWeights(model, recipe.seed),
  threads: Number(flags.threads),
});
await train(engine);
const test = runSet("test", "held-out", 1000);
const greedy = await measure(engine, flags.trial === undefined ? test : development, 0);
const sampled = await measure(engine, flags.trial === undefined ? test : development, 1);
const { weights } = await engine.exportState();
await engine.close();
console.log(`greedy  ${show(greedy)}\nsampled ${show(sampled)}`);
if (flags.trial !== undefined) await writeFile(flags.trial, weights);
else await publish(weights);

async function publish(bytes: Uint8Array): Promise<void> {
  const path = join(folder, "manifest.json");
  const manifest = manifestSchema.parse(JSON.parse(await readFile(path, "utf8")));
  const figures = ({ hits: _, ...rest }: Measured) => rest;
  await writeFile(join(folder, FILE), bytes);
  const entry = {
    file: FILE,
    bytes: bytes.byteLength,
    sha256: createHash("sha256").update(bytes).digest("hex"),
    recipe: { script: "scripts/embedded/warm-start.ts", ...recipe },
    figures: {
      testSet: "1,000 held-out runs of scripts/embedded/chains.ts, set name 'test'",
      greedy: figures(greedy),
      sampled: figures(sampled),
      floors: floors(test, runSet("training", "train", 1500)),
    },
  };
  await writeFile(path, `${JSON.stringify({ ...manifest, weights: entry }, null, 2)}\n`);
}
