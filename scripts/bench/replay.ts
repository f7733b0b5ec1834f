/**
 * How fast tapes are recorded and replayed.
 *
 * usage: npx tsx scripts/bench/replay.ts [--calls 45000] [--rounds 3] [--connections 16] [--paced 300]
 *
 * In process: calls per second of the player. Proxy: its request rate beside a bare node:http server that only parses
 * the same bodies, each in a process of its own, under the same load; the CPU time a request costs each of them, which a
 * busy machine disturbs less than the rate; what recording and replay add to a call at 100 requests per second.
 */
import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { ChatRequest } from "../../src/models/chat-model.ts";
import { textTable } from "../../src/report/table.ts";
import { createPlayer } from "../../synth/tape/player.ts";
import type { Tape } from "../../synth/tape/tape.ts";
import { flood, type Load, paced, percentile } from "./replay-load.ts";
import { bodyOf, RUN, TOKEN, writeBenchTape } from "./replay-tape.ts";

const { values: flags } = parseArgs({
  options: {
    calls: { type: "string", default: "45000" },
    rounds: { type: "string", default: "3" },
    connections: { type: "string", default: "16" },
    /** Requests per server in the measurement of latencies. */
    paced: { type: "string", default: "300" },
  },
});
const calls = Number(flags.calls);
const rounds = Number(flags.rounds);
const connections = Number(flags.connections);

interface Server {
  readonly load: Load;
  readonly loadMs: number | undefined;
  usage(): Promise<{ readonly cpuMicros: number; readonly rssBytes: number }>;
  stop(): void;
}

interface Message {
  readonly port?: number;
  readonly loadMs?: number;
  readonly cpuMicros?: number;
  readonly rssBytes?: number;
}

async function start(kind: "bare" | "replay" | "record", ...args: readonly string[]): Promise<Server> {
  const child = fork(fileURLToPath(new URL("replay-server.ts", import.meta.url)), [kind, ...args]);
  let loadMs: number | undefined;
  const port = await new Promise<number>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the ${kind} server ended with code ${code}`)));
    child.on("message", (message: Message) => {
      loadMs = message.loadMs ?? loadMs;
      if (message.port !== undefined) resolve(message.port);
    });
  });
  const path = kind === "bare" ? "/v1/chat/completions" : `/r/${RUN}/a/solver/v1/chat/completions`;
  return {
    load: { port, path, token: TOKEN, connections },
    loadMs,
    usage: () => askUsage(child),
    stop: () => child.kill("SIGKILL"),
  };
}

function askUsage(child: ChildProcess): Promise<{ cpuMicros: number; rssBytes: number }> {
  return new Promise((resolve) => {
    child.once("message", ({ cpuMicros = 0, rssBytes = 0 }: Message) => resolve({ cpuMicros, rssBytes }));
    child.send("usage");
  });
}

interface Measured {
  readonly rate: number;
  readonly cpuMicros: number;
  readonly rssMb: number;
}

/** Warms the server up with the first eighth of the bodies and measures the others. */
async function measure(server: Server, bodies: readonly string[]): Promise<Measured> {
  const warmUp = Math.floor(bodies.length / 8);
  await flood(server.load, bodies.slice(0, warmUp));
  const before = await server.usage();
  const { seconds } = await flood(server.load, bodies.slice(warmUp));
  const after = await server.usage();
  const n = bodies.length - warmUp;
  return { rate: n / seconds, cpuMicros: (after.cpuMicros - before.cpuMicros) / n, rssMb: after.rssBytes / 2 ** 20 };
}

async function inProcess(): Promise<void> {
  const prompts: Pick<ChatRequest, "messages">[] = Array.from({ length: 20_000 }, (_, index) =>
    JSON.parse(bodyOf(index)),
  );
  const tape: Tape = {
    version: 1,
    calls: prompts.map(({ messages }, index) => ({
      index,
      lane: "solver",
      request: { messages },
      response: { content: "42", toolCalls: [], finishReason: "stop", model: "m" },
    })),
  };
  console.log(`in-process replay of ${prompts.length} calls of 1 kB; the first round hashes the tape:`);
  for (let round = 0; round < rounds + 1; round++) {
    const from = performance.now();
    const player = createPlayer({ tape });
    for (const { messages } of prompts) await player.model.complete({ messages }, { agent: "solver" });
    const seconds = (performance.now() - from) / 1000;
    console.log(
      `  ${(prompts.length / seconds).toFixed(0)} calls/s (${player.levels.L0} at L0, ${player.unplayed()} left)`,
    );
  }
}

const folder = mkdtempSync(join(tmpdir(), "rootstep-bench-"));
const median = (values: readonly number[]): number => percentile(values, 0.5);
try {
  console.log(`${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}, node ${process.version}`);
  await inProcess();

  const bodies = Array.from({ length: calls }, (_, index) => bodyOf(index));
  writeBenchTape(join(folder, "tape"), calls);
  const results: Record<"bare" | "replay" | "record", Measured[]> = { bare: [], replay: [], record: [] };
  let loadMs = 0;
  for (let round = 0; round < rounds; round++) {
    const bare = await start("bare");
    results.bare.push(await measure(bare, bodies));
    const replay = await start("replay", join(folder, "tape"));
    loadMs = replay.loadMs ?? 0;
    results.replay.push(await measure(replay, bodies));
    replay.stop();
    const record = await start("record", join(folder, `record-${round}`), `http://127.0.0.1:${bare.load.port}/v1`);
    results.record.push(await measure(record, bodies));
    record.stop();
    bare.stop();
  }
  const bareRate = median(results.bare.map(({ rate }) => rate));
  const bareCpu = median(results.bare.map(({ cpuMicros }) => cpuMicros));
  console.log(`\ntape of ${calls} distinct calls opened in ${loadMs.toFixed(0)} ms`);
  console.log(
    textTable(
      `${calls} requests of ${bodies[0]?.length} bytes over ${connections} connections, median of ${rounds} rounds`,
      ["server", "requests/s", "share of bare (%)", "CPU µs/request", "bare CPU / its CPU (%)", "RSS MB"],
      Object.entries(results).map(([name, measured]) => {
        const [rate, cpu] = [median(measured.map((m) => m.rate)), median(measured.map((m) => m.cpuMicros))];
        const rss = median(measured.map((m) => m.rssMb));
        return [
          name,
          rate.toFixed(0),
          ((100 * rate) / bareRate).toFixed(1),
          cpu.toFixed(1),
          ((100 * bareCpu) / cpu).toFixed(1),
          rss.toFixed(0),
        ];
      }),
    ),
  );

  const bare = await start("bare");
  const replay = await start("replay", join(folder, "tape"));
  const record = await start("record", join(folder, "record-paced"), `http://127.0.0.1:${bare.load.port}/v1`);
  const some = bodies.slice(0, Number(flags.paced));
  for (const { load } of [bare, replay, record]) await flood(load, bodies.slice(some.length, some.length + 4000));
  const [direct = [], replayed = [], recorded = []] = await paced([bare.load, replay.load, record.load], some, 10);
  for (const server of [bare, replay, record]) server.stop();
  const row = (name: string, values: readonly number[]): string[] => [
    name,
    percentile(values, 0.5).toFixed(3),
    percentile(values, 0.99).toFixed(3),
    (percentile(values, 0.5) - percentile(direct, 0.5)).toFixed(3),
    (percentile(values, 0.99) - percentile(direct, 0.99)).toFixed(3),
  ];
  console.log(
    textTable(
      `\n100 requests/s, ${some.length} to each server in turn (ms)`,
      ["server", "p50", "p99", "added p50", "added p99"],
      [row("bare", direct), row("replay", replayed), row("record, before bare", recorded)],
    ),
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
