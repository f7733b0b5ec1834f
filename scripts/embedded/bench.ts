/**
 * What GRPO adds to the warm start, and what as many updates of cross-entropy on the same labels would add.
 *
 * usage: npx tsx scripts/embedded/bench.ts [--seeds 1,2,3] [--steps 60] [--learning-rate 3e-4] [--set development] …
 *
 * Trains on 1,500 runs with verified labels of the train split, measures on runs of held-out problems.
 */
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { trainConfigSchema } from "../../trainer/config.ts";
import type { TrainingExample } from "../../trainer/dataset.ts";
import { type EmbeddedEngine, openEmbeddedEngine } from "../../trainer/engines/embedded/engine.ts";
import { grpo } from "../../trainer/loop.ts";
import type { Metric } from "../../trainer/metrics.ts";
import { sftConfigSchema, sftStep } from "../../trainer/sft.ts";
import type { FailedRun } from "./chains.ts";
import { floors, type Measured, measure, runSet, show } from "./measure.ts";

const { values: flags } = parseArgs({
  options: {
    seeds: { type: "string", default: "1,2,3" },
    steps: { type: "string", default: "60" },
    "learning-rate": { type: "string", default: "3e-4" },
    decay: { type: "string", default: "linear" },
    minibatches: { type: "string", default: "2" },
    "no-std": { type: "boolean", default: false },
    records: { type: "string", default: "1500" },
    /** `development` while choosing settings, `test` once. */
    set: { type: "string", default: "development" },
    size: { type: "string", default: "500" },
    threads: { type: "string", default: "1" },
    /** Learning rate of the cross-entropy control; 0 leaves it out. */
    control: { type: "string", default: "0" },
    /** Weights to start from, in place of the shipped ones. */
    weights: { type: "string" },
    "log-every": { type: "string", default: "20" },
  },
});

const measured = runSet(flags.set, "held-out", Number(flags.size));
const training = runSet("training", "train", Number(flags.records));
const bytes = flags.weights === undefined ? undefined : new Uint8Array(await readFile(flags.weights));

async function open(): Promise<EmbeddedEngine> {
  const engine = await openEmbeddedEngine({ threads: Number(flags.threads) });
  if (bytes !== undefined) await engine.importState({ weights: bytes });
  return engine;
}

function examplesOf(engine: EmbeddedEngine, runs: readonly FailedRun[]): TrainingExample[] {
  return runs.map(({ trajectory, decisive }) => ({
    trajectory,
    label: { ...decisive, source: "injection" },
    prompt: engine.codec.encodePrompt(trajectory),
  }));
}

function configOf(seed: number) {
  return trainConfigSchema.parse({
    steps: Number(flags.steps),
    seed,
    minibatches: Number(flags.minibatches),
    learningRate: Number(flags["learning-rate"]),
    warmup: 5,
    decay: flags.decay,
    normalizeStd: !flags["no-std"],
    optimizer: { beta2: 0.98 },
    evalEvery: Number(flags.steps),
  });
}

async function reinforce(seed: number): Promise<Measured> {
  const engine = await open();
  const config = configOf(seed);
  const cpu = process.cpuUsage();
  const every = Number(flags["log-every"]);
  await grpo(
    {
      config,
      engine,
      rollouts: engine,
      examples: examplesOf(engine, training),
      heldOut: [],
      now: () => performance.now(),
    },
    undefined,
    {
      onMetric: async (metric) => {
        if ((metric.step + 1) % every === 0 || metric.step === 0) console.log(line(metric));
      },
      onEvaluation: async () => undefined,
      onCheckpoint: async () => undefined,
      onRatioCheck: () => undefined,
    },
  );
  const { user, system } = process.cpuUsage(cpu);
  console.log(`  ${((user + system) / 1e6).toFixed(0)} CPU s`);
  const result = await measure(engine, measured, 0);
  console.log(`  sampled ${show(await measure(engine, measured, 1))}`);
  await engine.close();
  return result;
}

/** Cross-entropy on the verified labels, for as many optimiser steps on as many prompts. */
async function control(seed: number): Promise<Measured> {
  const engine = await open();
  const updates = Number(flags.steps) * Number(flags.minibatches);
  const config = sftConfigSchema.parse({
    steps: updates,
    seed,
    batchSize: 32 / Number(flags.minibatches),
    learningRate: Number(flags.control),
    warmup: 10,
    decay: "linear",
    optimizer: { beta2: 0.98 },
    promptLossWeight: 0,
  });
  const examples = examplesOf(engine, training);
  for (let s = 0; s < updates; s += 1) {
    await sftStep(engine, config, examples, (trajectory, label) => engine.codec.encodeCompletion(trajectory, label), s);
  }
  const result = await measure(engine, measured, 0);
  await engine.close();
  return result;
}

function line({ step, reward, deadGroups, clipFraction, gradNorm, entropy, ratio }: Metric): string {
  const f = (x: number | null | undefined, digits = 3) => (x ?? Number.NaN).toFixed(digits);
  return `  ${step + 1} R ${f(reward.mean)} step ${f(reward.exactStep)} agent ${f(reward.agent)} format ${f(reward.format)} dead ${deadGroups} clip ${f(clipFraction)} ratio sd ${f(ratio?.std)} norm ${f(gradNorm, 2)} entropy ${f(entropy)}`;
}

/** McNemar's z of two policies on the same runs: positive where `after` is better. */
function mcnemar(before: Measured, after: Measured): string {
  const won = after.hits.filter((hit, i) => hit && before.hits[i] === false).length;
  const lost = after.hits.filter((hit, i) => !hit && before.hits[i] === true).length;
  return `+${won} −${lost}, z ${((won - lost) / Math.sqrt(won + lost || 1)).toFixed(1)}`;
}

console.log(JSON.stringify(flags));
for (const [name, { share, low, high, n }] of Object.entries(floors(measured, training))) {
  console.log(`floor ${name} ${share} [${low}, ${high}] n ${n}`);
}
const start = await open();
const before = await measure(start, measured, 0);
console.log(`start greedy  ${show(before)}\nstart sampled ${show(await measure(start, measured, 1))}`);
await start.close();
for (const seed of flags.seeds.split(",").map(Number)) {
  const after = await reinforce(seed);
  console.log(`seed ${seed} GRPO    ${show(after)} (${mcnemar(before, after)})`);
  if (flags.control === "0") continue;
  const supervised = await control(seed);
  console.log(`seed ${seed} control ${show(supervised)} (${mcnemar(before, supervised)})`);
}
