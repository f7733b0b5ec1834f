/**
 * How fast is evaluation? Rescoring 100,000 predictions, loading and auditing Who&When, and `eval run` against a server that
 * answers after 5 ms, beside a bare undici loop that sends the same bodies to the same server.
 *
 * usage: npx tsx scripts/bench/eval.ts [--only score,load,throughput] [--repeats 5] [--requests 4000] [--concurrency 64]
 *          [--delay 5]
 *
 * Each figure is the best and the median of `--repeats`, and the CPU time of the best: on a machine that others use as well,
 * the CPU time is what counts. Of throughput, the rounds of bare loop and `eval run` take turns.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { dataChoiceSchema, loadData } from "../../src/evaluation/data.ts";
import { type EvaluationItem, loadWhoAndWhen } from "../../src/evaluation/datasets.ts";
import { floorsFor } from "../../src/evaluation/floors.ts";
import type { Prediction } from "../../src/evaluation/prediction.ts";
import { readPredictions } from "../../src/evaluation/prediction-file.ts";
import { scorePredictions } from "../../src/evaluation/score.ts";
import { auditWhoAndWhen } from "../../src/formats/audit.ts";
import { shippedPath } from "../../src/package-root.ts";
import { stream } from "../../src/random.ts";
import { textTable } from "../../src/report/table.ts";
import { benchThroughput } from "./eval-throughput.ts";

const { values: flags } = parseArgs({
  options: {
    only: { type: "string", default: "score,load,throughput" },
    repeats: { type: "string", default: "5" },
    requests: { type: "string", default: "4000" },
    concurrency: { type: "string", default: "64" },
    delay: { type: "string", default: "5" },
  },
});
const repeats = Number(flags.repeats);
const rows: string[][] = [];

interface Timing {
  readonly seconds: number;
  /** Of this process, all its threads. */
  readonly cpu: number;
}

async function once(what: () => unknown): Promise<Timing> {
  const [began, cpu] = [performance.now(), process.cpuUsage()];
  await what();
  const { user, system } = process.cpuUsage(cpu);
  return { seconds: (performance.now() - began) / 1000, cpu: (user + system) / 1e6 };
}

/** Each repeat, the first one (cold code) included. */
async function timed(what: () => unknown): Promise<Timing[]> {
  const timings: Timing[] = [];
  for (let i = 0; i < repeats; i++) timings.push(await once(what));
  return timings;
}

function report(name: string, goal: string, timings: readonly Timing[]): void {
  const sorted = (of: keyof Timing): number[] => timings.map((timing) => timing[of]).sort((a, b) => a - b);
  const [seconds, cpu] = [sorted("seconds"), sorted("cpu")];
  const middle = Math.floor(timings.length / 2);
  const text = (value: number | undefined): string => `${(value ?? 0).toFixed(3)} s`;
  rows.push([name, goal, text(seconds[0]), text(seconds[middle]), text(cpu[0])]);
}

/** Predictions as a model makes them: some right, some without an answer, with usage. */
function madePredictions(items: readonly EvaluationItem[], count: number): Prediction[] {
  const random = stream(1, "bench-predictions");
  return Array.from({ length: count }, (_, i): Prediction => {
    const item = items[i % items.length];
    if (item === undefined) throw new RangeError("no items");
    const right = random.chance(0.4);
    const other = random.pick(item.trajectory.steps);
    return {
      itemId: item.id,
      epoch: Math.floor(i / items.length),
      method: "all-at-once",
      agent: right ? item.label.agent : other.agent,
      step: right ? item.label.step : other.index,
      evidence: [{ text: "the agent took the wrong file and did not look at the result" }],
      rawOutput: "Agent Name: X\nStep Number: 1\nReason: the agent took the wrong file and did not look at the result",
      parsePath: "labelled-lines",
      calls: 1,
      usage: { promptTokens: 4000, completionTokens: 120 },
      latencyMs: 2500,
    };
  });
}

async function benchScoring(): Promise<void> {
  const { items } = await loadWhoAndWhen();
  const epochs = Math.ceil(100_000 / items.length);
  const count = epochs * items.length;
  const name = `${count} predictions`;
  // First, and by itself: other predictions in memory would be work for the garbage collector.
  const folder = mkdtempSync(join(tmpdir(), "rootstep-bench-"));
  const file = join(folder, "predictions.jsonl");
  writeFileSync(file, linesOf(madePredictions(items, count)));
  report(
    `read, check and score ${name} from predictions.jsonl`,
    "< 1 s",
    await timed(() => scorePredictions(items, readPredictions(file).predictions)),
  );
  rmSync(folder, { recursive: true });
  const predictions = madePredictions(items, count);
  report(
    `score ${name} (184 logs × ${epochs} epochs, clustered intervals)`,
    "< 1 s",
    await timed(() => scorePredictions(items, predictions)),
  );
  const many = predictions.map((p, i) => ({ ...p, itemId: `${p.itemId}#${i}`, epoch: 0 }));
  const copies = many.map((p, i) => {
    const item = items[i % items.length];
    if (item === undefined) throw new RangeError("no items");
    return { ...item, id: p.itemId };
  });
  report(`score ${name} (one epoch, Wilson intervals)`, "< 1 s", await timed(() => scorePredictions(copies, many)));
}

const linesOf = (predictions: readonly Prediction[]): string =>
  predictions.map((prediction) => `${JSON.stringify(prediction)}\n`).join("");

async function benchLoading(): Promise<void> {
  const folder = shippedPath("data", "who_and_when");
  report("load the 184 logs", "", await timed(() => loadWhoAndWhen()));
  report("audit the 184 logs (reads them itself)", "", await timed(() => auditWhoAndWhen(folder)));
  report(
    "load and audit the 184 logs",
    "< 0.5 s",
    await timed(async () => {
      await loadWhoAndWhen();
      await auditWhoAndWhen(folder);
    }),
  );
  report(
    "load with checksums, floors of both halves",
    "",
    await timed(async () => {
      const { items } = await loadData(dataChoiceSchema.parse({}));
      for (const subset of new Set(items.map((item) => item.subset)))
        floorsFor(items.filter((item) => item.subset === subset));
    }),
  );
}

const only = flags.only.split(",");
if (only.includes("score")) await benchScoring();
if (only.includes("load")) await benchLoading();
if (only.includes("throughput")) {
  const settings = { concurrency: Number(flags.concurrency), delay: Number(flags.delay) };
  rows.push(...(await benchThroughput({ repeats, calls: Number(flags.requests), ...settings })));
}
console.log(
  textTable(
    `Evaluation on ${availableParallelism()} cores (load average ${loadavg()[0]?.toFixed(1)}), ${repeats} repeats`,
    ["", "goal", "best", "median", "CPU, best"],
    rows,
  ),
);
process.exit(0);
