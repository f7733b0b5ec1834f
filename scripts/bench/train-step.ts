/**
 * What of a GRPO step is the orchestrator's own work, at the paper's sizes: 32 prompts × 8 completions × 4,096 tokens, against a
 * fake vLLM server and a fake Tinker engine (protobuf) in a process of their own, which answer after fixed times:
 * `npx tsx scripts/bench/train-step.ts [--steps 3] [--tokens 4096] [--prompt 8192] [--sampleDelay 20000] [--engineDelay 5000]`.
 *
 * A step samples 32 groups at once, has the engine compute old log-probabilities, and takes two optimiser steps. The share is our process's
 * processor time beside what waiting for the servers alone would take, in the loop of `train run` with rewards, advantages, requests,
 * checks and metrics; wall time is printed too. Not in it: detokenising by a real tokenizer (words of a table stand in), evaluation,
 * checkpoints, weight sync, the network. Goal: at most 5 %. `step-share.ts` measures it with real engines of tiny models.
 */
import { fork } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { z } from "zod";
import { shippedPath } from "../../src/package-root.ts";
import { loadConfig } from "../../src/runs/config.ts";
import { trajectorySchema } from "../../src/trajectory/schema.ts";
import { trainConfigSchema } from "../../trainer/config.ts";
import type { TrainingExample } from "../../trainer/dataset.ts";
import { openTinkerEngine } from "../../trainer/engines/tinker/engine.ts";
import { tinkerProfile } from "../../trainer/engines/tinker/profiles.ts";
import { launchJob, planLaunch } from "../../trainer/launch/plan.ts";
import type { TextCodec } from "../../trainer/text-codec.ts";
import { trainRun } from "../../trainer/train-run.ts";
import { vllmRollouts } from "../../trainer/vllm/rollouts.ts";
import { openVllmServer } from "../../trainer/vllm/server.ts";
import { benchPrompt, type ServerSettings } from "./fake-training-server.ts";
import { median } from "./replay-load.ts";

const [PROMPTS, N, MINIBATCHES, SEQUENCES_PER_REQUEST] = [32, 8, 2, 64];

const { values } = parseArgs({
  options: {
    steps: { type: "string", default: "3" },
    tokens: { type: "string", default: "4096" },
    prompt: { type: "string", default: "8192" },
    sampleDelay: { type: "string", default: "20000" },
    engineDelay: { type: "string", default: "5000" },
  },
});
const [steps, tokens, prompt] = [Number(values.steps), Number(values.tokens), Number(values.prompt)];
const [sampleDelay, engineDelay] = [Number(values.sampleDelay), Number(values.engineDelay)];

const MARKS: Readonly<Record<number, string>> = { 1: "<think>", 2: "</think>", 3: "<answer>", 4: "</answer>" };
const codec: TextCodec = {
  id: "bench",
  vocabulary: 151_936,
  endTokens: [0],
  encodePrompt: () => benchPrompt(prompt),
  encodeCompletion: () => [],
  encodeText: () => [],
  decodeCompletion: (ids) =>
    ids
      .slice(0, -1)
      .map((id) => MARKS[id] ?? (id < 100 ? `planner | ${id - 10}` : `word${id % 5000}`))
      .join(" ")
      .replaceAll("<answer> ", "<answer>")
      .replaceAll(" </answer>", "</answer>")
      .replaceAll("</think> <answer>", "</think><answer>"),
};

/** A failed run whose label the third of eight answers names. */
function example(i: number): TrainingExample {
  const label = { agent: "planner", step: 2, source: "injection" } as const;
  const trajectory = trajectorySchema.parse({
    schemaVersion: 1,
    id: `run-${i}`,
    task: { id: `task-${i}`, text: "2 + 2", source: "bench", groupId: `group-${i}` },
    system: "bench",
    stepPolicy: "per-call",
    steps: Array.from({ length: 9 }, (_, index) => ({ index, agent: "planner", content: "…" })),
    outcome: { success: false, checker: "bench" },
    labels: [label],
    provenance: { kind: "injected", simulated: true },
  });
  return { trajectory, label, prompt: benchPrompt(prompt) };
}

const timingSchema = z.looseObject({ totalMs: z.number(), sampleMs: z.number(), updateMs: z.number() });

const settings: ServerSettings = { sampleDelay, engineDelay, prompt, tokens, n: N, rows: SEQUENCES_PER_REQUEST };
const server = fork(fileURLToPath(new URL("fake-training-server.ts", import.meta.url)), [JSON.stringify(settings)]);
const folder = mkdtempSync(join(tmpdir(), "rootstep-bench-"));
try {
  const port = await new Promise<number>((resolve, reject) => {
    server.once("message", (message) => resolve(z.number().parse(message)));
    server.once("exit", (code) => reject(new Error(`the fake server ended with ${code}`)));
  });
  const address = { url: new URL(`http://127.0.0.1:${port}`) };
  const engine = await openTinkerEngine({
    address,
    profile: tinkerProfile("skyrl-train"),
    baseModel: "m",
    codec,
    limits: { maxPrompt: prompt, maxCompletion: tokens, groupSize: N },
    lora: { rank: 32, seed: 0 },
    sequencesPerRequest: SEQUENCES_PER_REQUEST,
  });
  const rollouts = vllmRollouts({
    servers: [openVllmServer(address)],
    model: "m",
    maxCompletion: tokens,
    concurrency: PROMPTS,
    attempts: 1,
  });
  const config = trainConfigSchema.parse({
    steps,
    promptsPerStep: PROMPTS,
    groupSize: N,
    minibatches: MINIBATCHES,
    checkpointEvery: 1000,
    evalEvery: 1000,
  });
  const cpu: number[] = [];
  let since = process.cpuUsage();
  await trainRun({
    config,
    engine,
    rollouts,
    examples: Array.from({ length: PROMPTS }, (_, i) => example(i)),
    heldOut: [],
    folder,
    onMetric: () => {
      const { user, system } = process.cpuUsage(since);
      cpu.push((user + system) / 1e6);
      since = process.cpuUsage();
    },
  });
  await engine.close();
  const timings = readFileSync(join(folder, "timings.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => timingSchema.parse(JSON.parse(line)));
  report(timings, cpu);
} finally {
  server.disconnect();
  rmSync(folder, { recursive: true });
}

function report(timings: readonly z.infer<typeof timingSchema>[], cpu: readonly number[]): void {
  const passes = Math.ceil((PROMPTS * N) / SEQUENCES_PER_REQUEST);
  // Old log-probabilities, the updates of both minibatches, and their optimiser steps.
  const waiting = (sampleDelay + engineDelay * (2 * passes + MINIBATCHES)) / 1000;
  console.log(
    `${PROMPTS} prompts of ${prompt} tokens × ${N} completions of ${tokens}; load ${loadavg()[0]?.toFixed(1)}`,
  );
  console.log(
    `waiting for the servers alone: ${waiting.toFixed(1)} s a step (${sampleDelay} ms rollouts, ${engineDelay} ms an engine request)`,
  );
  for (const [step, { totalMs, sampleMs, updateMs }] of timings.entries()) {
    const own = totalMs / 1000 - waiting;
    const share = ((100 * own) / (totalMs / 1000)).toFixed(1);
    const parts = `sampling ${(sampleMs / 1000).toFixed(2)} s, update ${(updateMs / 1000).toFixed(2)} s`;
    console.log(
      `step ${step}: ${(totalMs / 1000).toFixed(2)} s (${parts}); beyond waiting ${own.toFixed(2)} s = ${share} %; CPU ${cpu[step]?.toFixed(2)} s`,
    );
  }
  const own = median(timings.map(({ totalMs }) => totalMs / 1000 - waiting));
  const share = (100 * own) / (own + waiting);
  const processor = median(cpu);
  console.log(
    `processor time of the orchestrator, median: ${processor.toFixed(2)} s, ${((100 * processor) / (processor + waiting)).toFixed(1)} % of a step that waits ${waiting.toFixed(0)} s and does nothing at the same time (goal: at most 5)`,
  );
  const { sampling, training } = estimatedSeconds();
  const estimated = sampling + training;
  console.log(
    `and ${((100 * processor) / (processor + estimated)).toFixed(1)} % of the ${estimated.toFixed(0)} s that \`train launch\` estimates for such a step on 8 H100`,
  );
  console.log(`by wall time, which other programs on the machine lengthen: ${share.toFixed(1)} %`);
  console.log(
    `with ${own.toFixed(2)} s of its own it stays within 5 % of steps of ${(own / 0.05).toFixed(0)} s and more`,
  );
}

/** What the shipped configuration's step would take at these lengths; an estimate, not measured. */
function estimatedSeconds() {
  const file = shippedPath("configs", "qwen3-8b-h100x8.yaml");
  const shipped = loadConfig(trainConfigSchema, { verb: "train", file, env: {}, flags: {} });
  const job = launchJob(shipped, { configFile: file, data: [], out: "", name: "bench" });
  return planLaunch({ ...job, lengths: { ...job.lengths, maxPrompt: prompt, maxCompletion: tokens } }).seconds;
}
