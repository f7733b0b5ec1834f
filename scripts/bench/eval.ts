/**
 * How fast is evaluation? Rescoring 100,000 predictions, loading and auditing Who&When, and `eval run` against a server that
 * answers after 5 ms, beside a bare undici loop that sends the same bodies to the same server.
 *
 * usage: npx tsx scripts/bench/eval.ts [--only score,load,throughput] [--repeats 5] [--requests 4000] [--concurrency 64]
 *          [--delay 5]
 *
 * Each figure is the best and the median of `--repeats`, and the CPU time of the best: on a machine that others use as well,
 * the CPU time is what counts, and its ratio to a bare computation over the same bytes (reading and JSON.parse) that takes
 * turns with it. Of throughput, the rounds of bare loop and `eval run` take turns.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { sha256 } from "../../src/checksum.ts";
import { dataChoiceSchema, loadData } from "../../src/evaluation/data.ts";
import { type EvaluationItem, loadWhoAndWhen } from "../../src/evaluation/datasets.ts";
import { floorsFor } from "../../src/evaluation/floors.ts";
import type { Prediction } from "../../src/evaluation/prediction.ts";
import { readPredictions } from "../../src/evaluation/prediction-file.ts";
import { scorePredictions } from "../../src/evaluation/score.ts";
import { auditWhoAndWhen } from "../../src/formats/audit.ts";
import { whoAndWhenFiles } from "../../src/formats/who-and-when/read.ts";
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

/** Several things in turn, so that all meet the same load of the machine. */
async function besides(...whats: readonly (() => unknown)[]): Promise<Timing[][]> {
  const timings = whats.map((): Timing[] => []);
  for (let i = 0; i < repeats; i++) {
    for (const [position, what] of whats.entries()) timings[position]?.push(await once(what));
  }
  return timings;
}

/** @param beside a reference computation that was timed in turn with it: its CPU time makes the figure one for any machine */
function report(name: string, goal: string, timings: readonly Timing[] = [], beside?: readonly Timing[]): void {
  const sorted = (of: keyof Timing): number[] => timings.map((timing) => timing[of]).sort((a, b) => a - b);
  const [seconds, cpu] = [sorted("seconds"), sorted("cpu")];
  const middle = Math.floor(timings.length / 2);
  const text = (value: number | undefined): string => `${(value ?? 0).toFixed(3)} s`;
  const least = Math.min(...(beside ?? []).map((timing) => timing.cpu));
  const ratio = beside === undefined ? "" : ` (${((cpu[0] ?? 0) / least).toFixed(1)} × bare)`;
  rows.push([name, goal, text(seconds[0]), text(seconds[middle]), `${text(cpu[0])}${ratio}`]);
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
  const [bare, read] = await besides(
    () => bareLines(file),
    () => scorePredictions(items, readPredictions(file).predictions),
  );
  report("bare: read the file, split it, JSON.parse each line", "", bare);
  report(`read, check and score ${name} from predictions.jsonl`, "< 1 s", read, bare);
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

/** What no reader of the file can do without, and nothing else. */
function bareLines(file: string): unknown[] {
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
}

/** The same for files of one record each, with the checksum that a run's manifest holds. */
function bareFiles(files: readonly string[]): unknown[] {
  return files.map((file) => {
    const bytes = readFileSync(file);
    return [JSON.parse(bytes.toString("utf8")), sha256(bytes)];
  });
}

const linesOf = (predictions: readonly Prediction[]): string =>
  predictions.map((prediction) => `${JSON.stringify(prediction)}\n`).join("");

async function benchLoading(): Promise<void> {
  const folder = shippedPath("data", "who_and_when");
  const files = await whoAndWhenFiles(folder);
  const [bare, loading, auditing, both, whole] = await besides(
    () => bareFiles(files),
    () => loadWhoAndWhen(),
    () => auditWhoAndWhen(folder),
    async () => {
      await loadWhoAndWhen();
      await auditWhoAndWhen(folder);
    },
    async () => {
      const { items } = await loadData(dataChoiceSchema.parse({}));
      for (const subset of new Set(items.map((item) => item.subset)))
        floorsFor(items.filter((item) => item.subset === subset));
    },
  );
  report("bare: read the 184 files, JSON.parse and sha256 of each", "", bare);
  report("load the 184 logs", "", loading, bare);
  report("audit the 184 logs (reads them itself)", "", auditing, bare);
  report("load and audit the 184 logs", "< 0.5 s", both, bare);
  report("load with checksums, floors of both halves", "", whole, bare);
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
