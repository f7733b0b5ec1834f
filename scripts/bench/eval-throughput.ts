/**
 * `eval run` against a server that answers after some milliseconds, beside a bare undici loop that sends the same bodies, ready
 * made, to the same server. Server and clients are processes of their own; the rounds take turns, so that all meet the same
 * load of the machine.
 */
import { type ChildProcess, fork } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { shippedPath } from "../../src/package-root.ts";
import type { ClientFigures, ClientTask } from "./eval-client.ts";

export interface ThroughputSettings {
  readonly repeats: number;
  readonly calls: number;
  readonly concurrency: number;
  /** Milliseconds before each answer. */
  readonly delay: number;
}

const CASES = [
  { name: "bare undici loop, bodies ready made", kind: "bare", distinct: false },
  { name: "eval run, epochs over the same logs", kind: "eval-run", distinct: false },
  { name: "eval run, every log another", kind: "eval-run", distinct: true },
] as const;

const LOGS = shippedPath("data", "who_and_when", "Algorithm-Generated");

/** @returns lines of a table: name, calls per second, processor time of client and server per call */
export async function benchThroughput(settings: ThroughputSettings): Promise<string[][]> {
  const { repeats, calls, concurrency, delay } = settings;
  const folder = distinctLogs(calls);
  const server = start("fake-model-server.ts", String(delay));
  try {
    const baseUrl = `http://127.0.0.1:${await message(server)}/v1`;
    const epochs = Math.round(calls / readdirSync(LOGS).length);
    const rounds: { client: ClientFigures; serverCpu: number }[][] = CASES.map(() => []);
    for (let round = 0; round < repeats; round++) {
      for (const [position, { kind, distinct }] of CASES.entries()) {
        const task: ClientTask = { kind, baseUrl, concurrency, ...(distinct ? { folder, epochs: 1 } : { epochs }) };
        const before = await cpuOf(server);
        const client = await run(task);
        rounds[position]?.push({ client, serverCpu: (await cpuOf(server)) - before });
      }
    }
    return linesOf(rounds);
  } finally {
    server.disconnect();
    rmSync(folder, { recursive: true });
  }
}

function linesOf(rounds: readonly (readonly { client: ClientFigures; serverCpu: number }[])[]): string[][] {
  const perCall = (part: (typeof rounds)[number]): number[] => part.map(({ client }) => client.cpu / client.calls);
  const rates = (part: (typeof rounds)[number]): number[] => part.map(({ client }) => client.calls / client.seconds);
  const [bare = []] = rounds;
  return CASES.flatMap(({ name }, position) => {
    const part = rounds[position] ?? [];
    const served = part.map(({ client, serverCpu }) => serverCpu / client.calls);
    const lines = [
      [`${name}: calls per second`, "", ...spread(rates(part), "most", (rate) => rate.toFixed(0))],
      [`${name}: CPU per call, client`, "", ...spread(perCall(part), "least", micros)],
      [`${name}: CPU per call, server`, "", ...spread(served, "least", micros)],
    ];
    if (position === 0) return lines;
    const wall = rates(part).map((rate, round) => rate / (rates(bare)[round] ?? rate));
    const cpu = perCall(bare).map((time, round) => time / (perCall(part)[round] ?? time));
    const share = (value: number): string => `${(100 * value).toFixed(0)}%`;
    return [
      ...lines,
      [`${name}: of the bare loop's throughput`, "≥ 95%", ...spread(wall, "most", share)],
      [`${name}: the same by client CPU`, "", ...spread(cpu, "most", share)],
    ];
  });
}

const micros = (value: number): string => `${value.toFixed(0)} µs`;

/** Best and median. */
function spread(values: readonly number[], best: "most" | "least", text: (value: number) => string): string[] {
  const sorted = [...values].sort((a, b) => (best === "most" ? b - a : a - b));
  return [text(sorted[0] ?? 0), text(sorted[Math.floor(sorted.length / 2)] ?? 0)];
}

/** Logs that differ in their first words, so that no prompt is asked twice. */
function distinctLogs(count: number): string {
  const folder = mkdtempSync(join(tmpdir(), "rootstep-bench-logs-"));
  const subset = join(folder, "Algorithm-Generated");
  mkdirSync(subset);
  const logs = readdirSync(LOGS).map((name) => readFileSync(join(LOGS, name), "utf8"));
  for (let i = 0; i < count; i++) {
    const log: { question: string; history: { content: string }[] } = JSON.parse(logs[i % logs.length] ?? "{}");
    const [first, ...rest] = log.history;
    const history = [{ ...first, content: `${i}. ${first?.content}` }, ...rest];
    writeFileSync(
      join(subset, `${i + 1}.json`),
      JSON.stringify({ ...log, question: `${i}. ${log.question}`, history }),
    );
  }
  return folder;
}

function start(script: string, argument: string): ChildProcess {
  return fork(fileURLToPath(new URL(script, import.meta.url)), [argument], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
}

function message(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const ended = (): void => reject(new Error("the process ended without an answer"));
    child.once("exit", ended);
    child.once("message", (value) => {
      child.off("exit", ended);
      resolve(value);
    });
  });
}

/** Processor time of the server so far, in microseconds. */
async function cpuOf(server: ChildProcess): Promise<number> {
  server.send("cpu");
  const { user, system } = (await message(server)) as NodeJS.CpuUsage;
  return user + system;
}

async function run(task: ClientTask): Promise<ClientFigures> {
  const child = start("eval-client.ts", JSON.stringify(task));
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const figures = (await message(child)) as ClientFigures;
  await ended;
  return figures;
}
