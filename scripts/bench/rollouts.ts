/**
 * The rollout driver beside a bare undici loop on the same fake vLLM server (a process of its own, that answers each group
 * after a fixed time): `npx tsx scripts/bench/rollouts.ts [--setting realistic] [--rounds 5]`; any of `--groups --tokens --prompt --delay
 * --concurrency` changes the setting.
 *
 * Both keep `--concurrency` requests under way. The bare loop parses the JSON, keeps nothing and looks at nothing. Rounds take turns,
 * the first of each round another one, each in a new process that has made one full load of requests uncounted; figures are medians with lowest
 * and highest. Goal, in the realistic setting: at least 98 %. `brisk` and `stress` answer sooner than a server of an 8B model can, until the
 * client's processor is the limit: there compare processor time per group.
 */
import { fork } from "node:child_process";
import { loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import pLimit from "p-limit";
import { Agent, request } from "undici";
import { z } from "zod";
import { vllmRollouts } from "../../trainer/vllm/rollouts.ts";
import { openVllmServer } from "../../trainer/vllm/server.ts";
import { benchPrompt, type ServerSettings } from "./fake-training-server.ts";
import { median } from "./replay-load.ts";

const N = 8;
const MODEL = "m";
const taskSchema = z.object({
  kind: z.enum(["bare", "driver"]),
  port: z.number(),
  groups: z.number(),
  concurrency: z.number(),
  prompt: z.number(),
  tokens: z.number(),
});
type Task = z.infer<typeof taskSchema>;

/** Sizes in tokens, delay of a group in milliseconds. */
const SETTINGS = {
  realistic: { groups: 192, tokens: 1024, prompt: 4096, delay: 4000, concurrency: 64 },
  brisk: { groups: 640, tokens: 256, prompt: 1024, delay: 200, concurrency: 64 },
  stress: { groups: 640, tokens: 256, prompt: 1024, delay: 20, concurrency: 64 },
} as const;
type Setting = Record<keyof (typeof SETTINGS)["realistic"], number>;

const figuresSchema = z.object({ seconds: z.number(), cpu: z.number(), tokens: z.number() });
type Figures = z.infer<typeof figuresSchema>;

const agent = new Agent();

if (process.send !== undefined) {
  process.send(await work(taskSchema.parse(JSON.parse(process.argv[2] ?? ""))));
  process.disconnect();
} else await main();

async function work(task: Task): Promise<Figures> {
  const run = task.kind === "bare" ? bare : driver;
  // Uncounted: connections, compiled code.
  await run({ ...task, groups: task.concurrency });
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  const tokens = await run(task);
  const { user, system } = process.cpuUsage(cpu);
  return { seconds: (performance.now() - start) / 1000, cpu: (user + system) / 1e6, tokens };
}

/** @returns tokens received */
async function bare({ port, groups, concurrency, prompt, tokens }: Task): Promise<number> {
  const limit = pLimit(concurrency);
  const body = JSON.stringify({
    ...{ model: MODEL, prompt: benchPrompt(prompt), n: N, max_tokens: tokens, temperature: 1, seed: 1 },
    ...{ top_p: 1, logprobs: 0, return_token_ids: true },
  });
  const headers = { "content-type": "application/json" };
  const counts = Array.from({ length: groups }, () =>
    limit(async () => {
      const url = `http://127.0.0.1:${port}/v1/completions`;
      const answer = await request(url, { method: "POST", headers, body, dispatcher: agent });
      const { choices } = (await answer.body.json()) as { choices: { token_ids: number[] }[] };
      return choices.reduce((sum, { token_ids }) => sum + token_ids.length, 0);
    }),
  );
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

async function driver({ port, groups, concurrency, prompt, tokens }: Task): Promise<number> {
  const source = vllmRollouts({
    servers: [openVllmServer({ url: new URL(`http://127.0.0.1:${port}`), dispatcher: agent })],
    model: MODEL,
    maxCompletion: tokens,
    concurrency,
    attempts: 1,
  });
  const tokensOf = benchPrompt(prompt);
  const prompts = Array.from({ length: groups }, () => tokensOf);
  const sampled = await source.sample({ prompts, n: N, temperature: 1, seed: "bench" });
  return sampled.flat().reduce((sum, completion) => sum + completion.tokens.length, 0);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      setting: { type: "string", multiple: true, default: Object.keys(SETTINGS) },
      groups: { type: "string" },
      tokens: { type: "string" },
      prompt: { type: "string" },
      delay: { type: "string" },
      concurrency: { type: "string" },
      rounds: { type: "string", default: "3" },
    },
  });
  const { setting: chosen, rounds, ...changes } = values;
  for (const name of z.array(z.enum(["realistic", "brisk", "stress"])).parse(chosen)) {
    const numbers = Object.entries(changes).map(([key, value]) => [key, Number(value)] as const);
    await measure(name, { ...SETTINGS[name], ...Object.fromEntries(numbers) }, Number(rounds));
  }
}

async function measure(name: string, setting: Setting, rounds: number): Promise<void> {
  const { groups, tokens, prompt, delay, concurrency } = setting;
  const settings: ServerSettings = { sampleDelay: delay, engineDelay: 0, prompt, tokens, n: N, rows: 1 };
  const server = fork(fileURLToPath(new URL("fake-training-server.ts", import.meta.url)), [JSON.stringify(settings)]);
  const figures = { bare: [] as Figures[], driver: [] as Figures[] };
  try {
    const port = z.number().parse(await firstMessage(server));
    for (let round = 0; round < rounds; round++) {
      const kinds = round % 2 === 0 ? (["bare", "driver"] as const) : (["driver", "bare"] as const);
      for (const kind of kinds) {
        const task: Task = { kind, port, groups, concurrency, prompt, tokens };
        const client = fork(fileURLToPath(import.meta.url), [JSON.stringify(task)]);
        figures[kind].push(figuresSchema.parse(await firstMessage(client)));
      }
    }
  } finally {
    server.disconnect();
  }
  console.log(
    `${name}: ${groups} groups × ${N} completions × ${tokens} tokens, prompts of ${prompt}; ${delay} ms per group, ${concurrency} at a time; load ${loadavg()[0]?.toFixed(1)}`,
  );
  const ideal = Math.ceil(groups / concurrency) * (delay / 1000);
  console.log(`waiting alone would take ${ideal.toFixed(2)} s`);
  for (const [kind, rows] of Object.entries(figures)) {
    const rate = spread(rows.map((row) => row.tokens / row.seconds));
    const cpu = spread(
      rows.map((row) => (1000 * row.cpu) / groups),
      2,
    );
    console.log(`${kind.padEnd(7)} ${rate} tokens/s   CPU per group ${cpu} ms`);
  }
  const share = (of: (row: Figures) => number): string => {
    const ratios = figures.driver.map((row, i) => (100 * of(figures.bare[i] ?? row)) / of(row));
    return spread(ratios);
  };
  const goal = name === "realistic" ? " (goal: at least 98)" : "";
  console.log(`driver / bare, round by round: ${share(({ seconds }) => seconds)} % of the rate${goal},`);
  console.log(`  bare's processor time is ${share(({ cpu }) => cpu)} % of the driver's`);
}

function spread(values: readonly number[], digits = 1): string {
  const show = (value: number) => (value >= 1000 ? Math.round(value).toLocaleString("en") : value.toFixed(digits));
  return `${show(median(values))} [${show(Math.min(...values))}–${show(Math.max(...values))}]`;
}

function firstMessage(child: ReturnType<typeof fork>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    child.once("message", resolve);
    child.once("exit", (code) => reject(new Error(`a process of the benchmark ended with ${code}`)));
  });
}
