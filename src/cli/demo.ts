import { join } from "node:path";
import { z } from "zod";
import { synthConfigSchema } from "../../synth/pipeline/config.ts";
import type { SynthReport } from "../../synth/pipeline/report.ts";
import { trainConfigSchema } from "../../trainer/config.ts";
import { buildExamples } from "../../trainer/dataset.ts";
import { embeddedCodec } from "../../trainer/engines/embedded/codec.ts";
import { isHeldOut } from "../../trainer/engines/embedded/held-out.ts";
import { metricSchema } from "../../trainer/metrics.ts";
import { openTracerPolicy, WARM_START } from "../../trainer/open-tracer.ts";
import { EXIT } from "../errors.ts";
import { comparePaired } from "../evaluation/compare.ts";
import { type EvaluationItem, loadTrajectoryFiles, loadWhoAndWhen } from "../evaluation/datasets.ts";
import { floorsFor } from "../evaluation/floors.ts";
import type { Prediction } from "../evaluation/prediction.ts";
import { evaluate } from "../evaluation/run.ts";
import { scorePredictions } from "../evaluation/score.ts";
import { readJsonLines } from "../formats/jsonl.ts";
import { verifyShipped } from "../formats/shipped-data.ts";
import { methodById } from "../methods/registry.ts";
import { shippedPath } from "../package-root.ts";
import { type FloorsByGroup, floorsTable } from "../report/evaluation-report.ts";
import { textTable } from "../report/table.ts";
import { type TracerComparison, tracerTable } from "../report/tracer-report.ts";
import { loadConfig } from "../runs/config.ts";
import { type CommandContext, command, optionalString } from "./command.ts";
import { runSynth, searchTable } from "./synth.ts";
import { prepare, runTraining } from "./train.ts";

const demoSchema = z.strictObject({
  seed: z.number().int().default(1).describe("seed of every random stream"),
});

/** `demo`: the whole main job once, offline: record → label → inject → dataset → train → evaluate. */
export const demo = command<z.infer<typeof demoSchema>>({
  name: "demo",
  describe: "run the whole job once, offline: record, label, inject, train a tracer, evaluate it",
  schema: demoSchema,
  arguments: [
    { name: "out", describe: "folder of the demo's runs [default: runs/demo]; running again goes on", type: "string" },
  ],
  async run({ seed }, args, context) {
    const out = optionalString(args, "out") ?? join("runs", "demo");
    await verifyShipped("gsm8k");
    await verifyShipped("who_and_when");
    const synth = (name: string): Promise<SynthReport> => {
      context.progress.note(
        `\n── ${name}: rootstep synth run --config configs/demo/${name}.yaml --out ${join(out, name)}`,
      );
      return runSynth(demoConfig(synthConfigSchema, `${name}.yaml`, seed), join(out, name), context);
    };
    const labelling = { slip: await synth("gsm8k-slip"), systematic: await synth("gsm8k-systematic") };
    const data = { chain: await synth("tracer-chain"), gsm8k: await synth("tracer-gsm8k") };
    const tracer = await trainAndEvaluate(out, seed, context);
    const whoAndWhen = await whoAndWhenFloors();
    context.print(
      { seed, labelling, data, tracer: tracer.document, whoAndWhen },
      [
        `\nSeed ${seed}. Everything above the last table is simulated: the agents are played by rootstep's fallible simulator.`,
        searchTable(
          "Labels by replay on GSM8K, slip regime (10% noise), against the simulator's truth",
          labelling.slip.strategies,
        ),
        searchTable("The same, systematic regime (10% noise)", labelling.systematic.strategies),
        dataTable(data),
        tracer.text,
        floorsTable("Who&When: what guessing scores", exactFloors(whoAndWhen)),
        `Everything is in ${out}. Next: rootstep --help, or README.md.`,
      ].join("\n\n"),
    );
    return EXIT.ok;
  },
});

function demoConfig<T>(schema: z.ZodType<T>, file: string, seed: number): T {
  return loadConfig(schema, { verb: "demo", file: shippedPath("configs", "demo", file), env: {}, flags: { seed } });
}

/** GRPO from the warm start on the train splits, then both policies on the test splits, greedy. */
async function trainAndEvaluate(
  out: string,
  seed: number,
  context: CommandContext,
): Promise<{ readonly document: TracerComparison; readonly text: string }> {
  const split = (name: "train" | "test"): string[] =>
    ["tracer-chain", "tracer-gsm8k"].map((run) => join(out, run, "dataset", `${name}.jsonl`));
  const train = await loadTrajectoryFiles(split("train"));
  const test = await loadTrajectoryFiles(split("test"));
  const folder = join(out, "tracer");
  const config = demoConfig(trainConfigSchema, join("..", "train-embedded.yaml"), seed);
  context.progress.note(
    `\n── train: rootstep train run --config configs/train-embedded.yaml --data ${join(out, "tracer-chain", "dataset")} ${join(out, "tracer-gsm8k", "dataset")} --out ${folder}`,
  );
  const prepared = await prepare(
    config,
    train.items.map(({ trajectory }) => trajectory),
    0.1,
  );
  await runTraining({ config, prepared, out: folder, threads: 2 }, context);
  const readable = new Set(
    buildExamples(
      test.items.map(({ trajectory }) => trajectory),
      embeddedCodec,
      { ...config, maxPrompt: Number.POSITIVE_INFINITY },
    ).examples.map(({ trajectory }) => trajectory.id),
  );
  const items = test.items.filter(({ id }) => readable.has(id));
  const answers = { before: await predict(WARM_START, items, context), after: await predict(folder, items, context) };
  const seedOf = { seed };
  // Test groups are never trained on here; of these, a fifth were not in the warm start's training either.
  const unseen = items.filter(({ trajectory }) => isHeldOut(trajectory));
  const document: TracerComparison = {
    trainedOn: prepared.train.length,
    sampled: await sampledShares(join(folder, "metrics.jsonl")),
    offered: test.items.length,
    n: items.length,
    floors: floorsFor(items, { train: train.items }),
    before: scorePredictions(items, answers.before, seedOf),
    after: scorePredictions(items, answers.after, seedOf),
    unseen: {
      before: scorePredictions(unseen, answers.before, seedOf),
      after: scorePredictions(unseen, answers.after, seedOf),
    },
    step: comparePaired(items, answers.after, answers.before, "step", seedOf),
    agent: comparePaired(items, answers.after, answers.before, "agent", seedOf),
  };
  return { document, text: tracerTable(document) };
}

async function sampledShares(metrics: string): Promise<TracerComparison["sampled"]> {
  const shares: number[] = [];
  for await (const { value } of readJsonLines(metrics)) shares.push(metricSchema.parse(value).reward.exactStep);
  return { first: shares[0] ?? Number.NaN, last: shares.at(-1) ?? Number.NaN };
}

async function predict(
  checkpoint: string,
  items: readonly EvaluationItem[],
  context: CommandContext,
): Promise<readonly Prediction[]> {
  const bar = context.progress.stage(`evaluate ${checkpoint === WARM_START ? "before" : "after"}`, items.length);
  const { policy, close } = await openTracerPolicy(checkpoint);
  try {
    const { predictions, stoppedBy } = await evaluate({
      items,
      method: methodById("tracer").configure(),
      context: { policy, seed: 0 },
      withReference: true,
      concurrency: 256,
      signal: context.signal,
      onPrediction: () => bar.advance(),
      now: () => context.now().getTime(),
    });
    if (stoppedBy !== undefined) throw stoppedBy;
    return predictions;
  } finally {
    bar.finish();
    await close();
  }
}

function dataTable(data: Readonly<Record<string, SynthReport>>): string {
  return textTable(
    "TracerTraj records for the tracer (labels by `exhaustive` and by injection; none from the simulator's truth)",
    ["tasks", "runs", "failed", "labelled by replay", "injected", "train", "test"],
    Object.entries(data).map(([name, report]) => [
      name,
      String(report.runs),
      String(report.failedRuns),
      String(report.strategies[0]?.labelled.hits ?? 0),
      String(report.injection.labelled),
      String(report.dataset.train),
      String(report.dataset.test),
    ]),
  );
}

/** Without the tolerance windows: the demo's table is for a terminal; `eval run` prints them all. */
function exactFloors(floors: FloorsByGroup): FloorsByGroup {
  return Object.fromEntries(
    Object.entries(floors).map(([group, list]) => [group, list.filter(({ tolerance }) => tolerance === 0)]),
  );
}

async function whoAndWhenFloors(): Promise<FloorsByGroup> {
  const { items } = await loadWhoAndWhen();
  const subsets = [...new Set(items.map(({ subset }) => subset))];
  return Object.fromEntries(
    subsets.map((subset) => [subset, floorsFor(items.filter((item) => item.subset === subset))]),
  );
}
