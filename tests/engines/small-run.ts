import { createHash } from "node:crypto";
import { join } from "node:path";
import { loadTrajectoryFiles } from "../../src/evaluation/datasets.ts";
import { shippedPath } from "../../src/package-root.ts";
import { trainConfigSchema } from "../../trainer/config.ts";
import { teachingLabel } from "../../trainer/dataset.ts";
import { openTinkerEngine } from "../../trainer/engines/tinker/engine.ts";
import { tinkerProfile } from "../../trainer/engines/tinker/profiles.ts";
import type { LoopState } from "../../trainer/loop.ts";
import { openTextCodec } from "../../trainer/text-codec.ts";
import { trainRun } from "../../trainer/train-run.ts";
import { vllmRollouts } from "../../trainer/vllm/rollouts.ts";
import { openVllmServer } from "../../trainer/vllm/server.ts";
import { unpackWeights } from "../../trainer/vllm/unpack.ts";
import { vllmWeightSync } from "../../trainer/vllm/weight-sync.ts";
import { engineServers } from "./servers.ts";

const MAX_PROMPT = 64;
const MAX_COMPLETION = 16;
export const PROMPTS_PER_STEP = 2;
const GROUP_SIZE = 4;
const LOGS = [2, 115, 75].map((n) => shippedPath("data", "who_and_when", "Algorithm-Generated", `${n}.json`));

const config = trainConfigSchema.parse({
  steps: 3,
  promptsPerStep: PROMPTS_PER_STEP,
  groupSize: GROUP_SIZE,
  minibatches: 1,
  // A random model earns no reward; what differs between its answers is whether they end in time.
  truncated: "penalise",
  deadGroups: "keep",
  stop: { collapseReward: 0, collapseSteps: 1000 },
  learningRate: 2e-3,
  labels: ["human"],
  checkpointEvery: 1,
  evalEvery: 100,
});

export interface SmallRun {
  readonly folder: string;
  readonly vllm?: readonly URL[];
  /** Milliseconds for the answer to a request to vLLM, and to the engine. */
  readonly vllmMs?: number;
  readonly engineMs?: number;
  /** Called when step s asks for its rollouts, and between its forward_backward and its optim_step. */
  readonly onSample?: (s: number) => unknown;
  readonly onOptimStep?: (s: number) => unknown;
  readonly onRetry?: () => void;
  /** Called when training has ended, one way or the other, before its servers are told. */
  readonly onEnd?: () => void;
}

/** Three steps of GRPO on the two real servers, wired as `train run` does it; from the folder's newest checkpoint if there is one. */
export async function smallRun(run: SmallRun): Promise<LoopState> {
  const { skyrl, vllm, model } = engineServers();
  const { folder, vllmMs = 600_000, engineMs = 600_000 } = run;
  const codec = openTextCodec({ folder: model, maxPrompt: MAX_PROMPT });
  const { items } = await loadTrajectoryFiles(LOGS);
  // Short prompts of one length: the engine compiles every length anew, and whole logs are what `grpo.suite.ts` trains on.
  const examples = items.map(({ trajectory }, i) => {
    const label = teachingLabel(trajectory, config.labels);
    if (label === undefined) throw new Error(`log ${trajectory.id} has no label`);
    return { trajectory, label, prompt: codec.encodeText(`Log ${i}. Which agent failed, and when? <think>`) };
  });
  const engine = await openTinkerEngine({
    address: { url: skyrl, timeouts: { firstByteMs: engineMs, totalMs: engineMs } },
    profile: tinkerProfile("skyrl-jax"),
    baseModel: model,
    codec,
    limits: { maxPrompt: MAX_PROMPT, maxCompletion: MAX_COMPLETION, groupSize: GROUP_SIZE },
    lora: { rank: 4, seed: 1 },
    journal: join(folder, "engine-journal.jsonl"),
  });
  const servers = (run.vllm ?? [vllm]).map((url) =>
    openVllmServer({ url, timeouts: { firstByteMs: vllmMs, totalMs: vllmMs } }),
  );
  const adapter = `small-${createHash("sha256").update(folder).digest("hex").slice(0, 12)}`;
  const [first = 0, ...rest] = codec.encodeText("<think>why</think><answer>Ada | 3</answer>");
  const sync = vllmWeightSync({
    mode: "lora",
    servers,
    model: "tiny",
    adapter,
    exportWeights: async (version) => {
      const target = join(folder, `weights-${version}`);
      await unpackWeights(await engine.downloadSamplerWeights(), target);
      return target;
    },
    probe: {
      tokens: [first, ...rest],
      engineLogprobs: async () => {
        const completion = { tokens: rest, weights: rest.map(() => 0), advantage: 0 };
        return (await engine.forward([{ prompt: [first], completions: [completion] }]))[0]?.[0] ?? [];
      },
    },
    tolerance: 1e-3,
  });
  const rollouts = vllmRollouts({
    servers,
    model: sync.model,
    maxCompletion: MAX_COMPLETION,
    concurrency: 8,
    attempts: 2,
    restMs: 50,
    policyVersion: () => sync.served,
    ...(run.onRetry && { onRetry: run.onRetry }),
  });
  const stepOf = (seed: string): number => Number(/"rollout",(\d+)/u.exec(seed)?.[1]);
  let s = Number.NaN;
  try {
    return await trainRun({
      config,
      engine: {
        ...engine,
        async optimStep(settings) {
          await run.onOptimStep?.(s);
          return engine.optimStep(settings);
        },
      },
      rollouts: {
        ...rollouts,
        async sample(request) {
          s = stepOf(request.seed);
          await run.onSample?.(s);
          return rollouts.sample(request);
        },
      },
      sync: async (version) => void (await sync.push(version)),
      examples,
      heldOut: [],
      folder,
    });
  } finally {
    run.onEnd?.();
    await Promise.all(servers.map((server) => server.unloadLora(adapter).catch(() => {})));
    await engine.close();
  }
}
