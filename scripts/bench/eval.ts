/**
 * How fast is evaluation? Rescoring 100,000 predictions, loading and auditing Who&When, and `evaluate` against a server that
 * answers after 5 ms, beside a bare undici loop that sends the same requests to the same server.
 *
 * usage: npx tsx scripts/bench/eval.ts [--only score,load,throughput] [--repeats 5] [--requests 4000] [--concurrency 64]
 *          [--delay 5]
 *
 * Each figure is the best and the median of `--repeats`, and the CPU time of the best: on a machine that others use as well,
 * the CPU time is what counts. Server and client run in threads of their own and share the machine's cores.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import pLimit from "p-limit";
import { Agent, request } from "undici";
import { dataChoiceSchema, loadData } from "../../src/evaluation/data.ts";
import { type EvaluationItem, loadWhoAndWhen } from "../../src/evaluation/datasets.ts";
import { floorsFor } from "../../src/evaluation/floors.ts";
import type { Prediction } from "../../src/evaluation/prediction.ts";
import { readPredictions } from "../../src/evaluation/prediction-file.ts";
import { type EvaluateOptions, evaluate } from "../../src/evaluation/run.ts";
import { scorePredictions } from "../../src/evaluation/score.ts";
import { auditWhoAndWhen } from "../../src/formats/audit.ts";
import { methodById } from "../../src/methods/registry.ts";
import type { ChatModel, ChatRequest } from "../../src/models/chat-model.ts";
import { modelConfigSchema, modelFromConfig } from "../../src/models/resolve.ts";
import { toWireRequest } from "../../src/models/wire.ts";
import { shippedPath } from "../../src/package-root.ts";
import { stream } from "../../src/random.ts";
import { textTable } from "../../src/report/table.ts";

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
  const predictions = madePredictions(items, epochs * items.length);
  const name = `${predictions.length} predictions`;
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
  const folder = mkdtempSync(join(tmpdir(), "rootstep-bench-"));
  const file = join(folder, "predictions.jsonl");
  writeFileSync(file, predictions.map((prediction) => `${JSON.stringify(prediction)}\n`).join(""));
  report(
    `read, check and score ${name} from predictions.jsonl`,
    "< 1 s",
    await timed(() => scorePredictions(items, readPredictions(file).predictions)),
  );
  rmSync(folder, { recursive: true });
}

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

const ANSWER = '{"agent": "WebSurfer", "step": 1}';

/** A chat server in a thread of its own that answers every request alike after a delay. */
const SERVER = `
const { createServer } = require("node:http");
const { parentPort, workerData } = require("node:worker_threads");
const body = JSON.stringify({ model: "m", choices: [{ message: { role: "assistant", content: workerData.answer }, finish_reason: "stop" }], usage: { prompt_tokens: 1000, completion_tokens: 20 } });
const server = createServer({ keepAliveTimeout: 60000 }, (request, response) => {
  request.resume();
  request.once("end", () => setTimeout(() => {
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
    response.end(body);
  }, workerData.delay));
});
server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));
`;

async function benchThroughput(): Promise<void> {
  const worker = new Worker(SERVER, { eval: true, workerData: { delay: Number(flags.delay), answer: ANSWER } });
  const port = await new Promise<number>((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
  const concurrency = Number(flags.concurrency);
  const baseUrl = `http://127.0.0.1:${port}/v1`;
  const config = modelConfigSchema.parse({
    provider: "openai-compatible",
    baseUrl,
    model: "m",
    stream: false,
    concurrency,
  });
  const { items } = await loadWhoAndWhen({ subset: "algorithm-generated" });
  const epochs = Math.max(1, Math.round(Number(flags.requests) / items.length));
  const method = methodById("all-at-once").configure();
  const settings = { items, method, withReference: false, epochs, concurrency };
  const asked = await requestsOf(settings);
  const bodies = asked.map((one) => JSON.stringify(toWireRequest(one, { model: "m", stream: false })));
  const dispatcher = new Agent({ connections: concurrency });
  const perSecond = (timings: readonly Timing[]): number =>
    bodies.length / Math.min(...timings.map(({ seconds }) => seconds));

  const bare = async (): Promise<void> => {
    const limiter = pLimit(concurrency);
    await Promise.all(
      bodies.map((body) =>
        limiter(async () => {
          const answer = await request(`${baseUrl}/chat/completions`, {
            method: "POST",
            dispatcher,
            headers: { "content-type": "application/json" },
            body,
          });
          await answer.body.json();
        }),
      ),
    );
  };
  const model = modelFromConfig(config, {});
  const client = async (): Promise<void> => {
    const limiter = pLimit(concurrency);
    await Promise.all(asked.map((one) => limiter(() => model.complete(one))));
  };
  const answered: ChatModel = {
    id: "memory",
    complete: async () => ({ content: ANSWER, toolCalls: [], finishReason: "stop", model: "memory" }),
  };
  const whole = async (): Promise<void> => {
    await evaluate({ ...settings, context: { model, seed: 1 } });
  };
  // In turns, so that both meet the same load of the machine.
  const bareTimes: Timing[] = [];
  const clientTimes: Timing[] = [];
  const wholeTimes: Timing[] = [];
  for (let i = 0; i < repeats; i++) {
    bareTimes.push(await once(bare));
    clientTimes.push(await once(client));
    wholeTimes.push(await once(whole));
  }
  const ratios = bareTimes.map(({ seconds }, i) => seconds / (wholeTimes[i]?.seconds ?? 1)).sort((a, b) => b - a);
  const label = `${bodies.length} requests, ${concurrency} at once, ${flags.delay} ms`;
  report(`bare undici loop: ${label}`, "", bareTimes);
  report(`rootstep's client alone, same requests: ${label}`, "", clientTimes);
  report(`evaluate: ${label}`, "", wholeTimes);
  report(
    `evaluate with a model in memory: ${bodies.length} requests`,
    "",
    await timed(() => evaluate({ ...settings, context: { model: answered, seed: 1 } })),
  );
  const ceiling = (1000 / Number(flags.delay)) * concurrency;
  rows.push([
    "throughput of evaluate, of the bare loop's",
    "≥ 95%",
    `${(100 * (ratios[0] ?? 0)).toFixed(0)}%`,
    `${(100 * (ratios[Math.floor(repeats / 2)] ?? 0)).toFixed(0)}%`,
    "",
  ]);
  rows.push([
    "requests per second: bare, evaluate, the delay alone allows",
    "",
    `${perSecond(bareTimes).toFixed(0)}, ${perSecond(wholeTimes).toFixed(0)}, ${ceiling.toFixed(0)}`,
    "",
    "",
  ]);
  await dispatcher.close();
  await worker.terminate();
}

/** The requests that an evaluation makes, caught on the way. */
async function requestsOf(settings: Omit<EvaluateOptions, "context">): Promise<ChatRequest[]> {
  const requests: ChatRequest[] = [];
  const catcher: ChatModel = {
    id: "catcher",
    complete: async (asked) => {
      requests.push(asked);
      return { content: ANSWER, toolCalls: [], finishReason: "stop", model: "catcher" };
    },
  };
  await evaluate({ ...settings, context: { model: catcher, seed: 1 } });
  return requests;
}

const only = flags.only.split(",");
if (only.includes("score")) await benchScoring();
if (only.includes("load")) await benchLoading();
if (only.includes("throughput")) await benchThroughput();
console.log(
  textTable(
    `Evaluation on ${availableParallelism()} cores, ${repeats} repeats`,
    ["", "goal", "best", "median", "CPU, best"],
    rows,
  ),
);
process.exit(0);
