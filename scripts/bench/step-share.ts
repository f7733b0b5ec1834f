/**
 * Processor time of the orchestrator (the loop, rewards, requests, parsing, records, checkpoints) as a share of a GRPO step:
 * `npx tsx scripts/bench/step-share.ts [--steps 6] [--setting embedded] [--setting servers]`. Goal: at most 5 %.
 *
 * - `embedded`: the shipped configuration of the embedded engine, which works in our own process. What its calls burn is the engine's,
 *   the rest ours; the share is of all processor time, which other programs on the machine disturb little.
 * - `servers`: configs/tiny-cpu.yaml on real vLLM and SkyRL servers (`scripts/engines/engines.sh`; left out without them). All of our process
 *   is ours; the share is of the step's wall time. Servers of a model this small answer far sooner than those of an 8B model.
 *
 * `train-step.ts` has the paper's sizes, with servers that only wait. The first step, which compiles, is not counted.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import { loadTrajectoryFiles } from "../../src/evaluation/datasets.ts";
import { shippedPath } from "../../src/package-root.ts";
import { loadConfig } from "../../src/runs/config.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import { labelledRuns } from "../../tests/trainer/embedded/support.ts";
import { type TrainConfig, trainConfigSchema } from "../../trainer/config.ts";
import { buildExamples } from "../../trainer/dataset.ts";
import type { TrainingEngine } from "../../trainer/engines/engine.ts";
import { describeEngine, openEngine } from "../../trainer/open-engine.ts";
import { trainRun } from "../../trainer/train-run.ts";
import { median } from "./replay-load.ts";

/** Seconds of one step. */
interface StepCost {
  readonly wall: number;
  readonly processor: number;
  /** Processor time within calls of the engine; 0 where it is another process. */
  readonly engine: number;
}

const { values } = parseArgs({
  options: {
    steps: { type: "string", default: "6" },
    setting: { type: "string", multiple: true, default: ["embedded", "servers"] },
  },
});
const steps = Number(values.steps);
const chosen = z.array(z.enum(["embedded", "servers"])).parse(values.setting);
if (chosen.includes("embedded")) await embedded();
if (chosen.includes("servers")) await servers();

async function embedded(): Promise<void> {
  const config = configured("train-embedded", {});
  const costs = await measure(config, labelledRuns("step share", 2 * config.promptsPerStep), true);
  const shares = costs.map(({ processor, engine }) => (100 * (processor - engine)) / processor);
  report("embedded engine", config, costs, shares, "of all processor time");
}

async function servers(): Promise<void> {
  const { ROOTSTEP_TINY_MODEL: model, ROOTSTEP_SKYRL_URL: skyrl, ROOTSTEP_VLLM_URL: vllm } = process.env;
  if (model === undefined || skyrl === undefined || vllm === undefined) {
    console.log("vLLM and SkyRL: left out, no servers (scripts/engines/engines.sh start FOLDER; . FOLDER/env)");
    return;
  }
  const config = configured("tiny-cpu", {
    engine: { baseModel: model, modelFolder: model },
    servers: { engine: skyrl, rollouts: [vllm] },
  });
  const logs = [2, 115, 75, 38].map((n) => shippedPath("data", "who_and_when", "Algorithm-Generated", `${n}.json`));
  const { items } = await loadTrajectoryFiles(logs);
  const costs = await measure(
    config,
    items.map(({ trajectory }) => trajectory),
    false,
  );
  const shares = costs.map(({ processor, wall }) => (100 * processor) / wall);
  report("vLLM and SkyRL, tiny model", config, costs, shares, "of the step's wall time");
}

function configured(name: string, flags: Readonly<Record<string, unknown>>): TrainConfig {
  const file = shippedPath("configs", `${name}.yaml`);
  const config = loadConfig(trainConfigSchema, { verb: "train", file, env: {}, flags });
  return { ...config, steps, evalEvery: steps + 1, checkpointEvery: 1 };
}

async function measure(
  config: TrainConfig,
  trajectories: readonly Trajectory[],
  metered: boolean,
): Promise<readonly StepCost[]> {
  const folder = mkdtempSync(join(tmpdir(), "rootstep-bench-"));
  const { codec, limits } = await describeEngine(config.engine);
  const { examples } = buildExamples(trajectories, codec, { ...config, maxPrompt: limits.maxPrompt });
  const opened = await openEngine({ config, environment: {}, folder });
  const meter = { seconds: 0 };
  const costs: StepCost[] = [];
  let [since, processor, engineSeconds] = [performance.now(), process.cpuUsage(), 0];
  try {
    await trainRun({
      config,
      engine: metered ? meteredEngine(opened.engine, meter) : opened.engine,
      ...(opened.rollouts && { rollouts: opened.rollouts }),
      ...(opened.sync && { sync: opened.sync }),
      examples,
      heldOut: [],
      folder,
      onMetric() {
        const now = performance.now();
        costs.push({
          wall: (now - since) / 1000,
          processor: seconds(process.cpuUsage(processor)),
          engine: meter.seconds - engineSeconds,
        });
        [since, processor, engineSeconds] = [now, process.cpuUsage(), meter.seconds];
      },
    });
  } finally {
    await opened.close();
    rmSync(folder, { recursive: true });
  }
  return costs.slice(1);
}

/** Adds up the processor time of the process while a call of the engine runs; the loop makes one at a time. */
function meteredEngine(engine: TrainingEngine, meter: { seconds: number }): TrainingEngine {
  const metered = async <T>(call: () => Promise<T>): Promise<T> => {
    const before = process.cpuUsage();
    try {
      return await call();
    } finally {
      meter.seconds += seconds(process.cpuUsage(before));
    }
  };
  return {
    ...engine,
    sample: (request) => metered(() => engine.sample(request)),
    forward: (groups) => metered(() => engine.forward(groups)),
    forwardBackward: (groups, loss) => metered(() => engine.forwardBackward(groups, loss)),
    optimStep: (settings) => metered(() => engine.optimStep(settings)),
  };
}

function seconds({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1e6;
}

function report(
  name: string,
  config: TrainConfig,
  costs: readonly StepCost[],
  shares: readonly number[],
  of: string,
): void {
  const own = costs.map(({ processor, engine }) => 1000 * (processor - engine));
  const spread = (list: readonly number[]) =>
    `${median(list).toFixed(1)} [${Math.min(...list).toFixed(1)}–${Math.max(...list).toFixed(1)}]`;
  console.log(
    `${name}: ${config.promptsPerStep} prompts × ${config.groupSize}, ${costs.length} steps; load ${loadavg()[0]?.toFixed(1)}`,
  );
  console.log(`  a step takes ${spread(costs.map(({ wall }) => wall))} s, our own processor time is ${spread(own)} ms`);
  console.log(`  share ${of}: ${spread(shares)} % (goal: at most 5)`);
}
