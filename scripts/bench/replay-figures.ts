/** What replay.ts runs once it is compiled: prepares the servers, measures them in turn, prints and stores the figures. */
import { execFileSync, fork } from "node:child_process";
import { writeFileSync } from "node:fs";
import { arch, availableParallelism, cpus, loadavg, platform, totalmem } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import {
  type Behaviour,
  behaviourOf,
  litellmTool,
  rootstepTool,
  type Tool,
  traceforkTool,
} from "./replay-behaviour.ts";
import type { InProcessRound } from "./replay-in-process.ts";
import { measureMemory } from "./replay-memory.ts";
import { type Figures, printFigures } from "./replay-report.ts";
import { type Bodies, bodiesNeeded, type Contender, measureRounds } from "./replay-rounds.ts";
import { killAll, startLitellm, startOwn, startTracefork, writeTraceforkTape } from "./replay-servers.ts";
import { writeBenchTape } from "./replay-tape.ts";

const { values: flags } = parseArgs({
  options: {
    /** Stores every figure, with those of each round. */
    json: { type: "string" },
    "no-peers": { type: "boolean", default: false },
    rounds: { type: "string", default: "5" },
    "memory-calls": { type: "string", default: "100000" },
    /** Tape of the loading figure and of replay. */
    calls: { type: "string", default: "45000" },
  },
});
const { ROOTSTEP_BENCH_FOLDER: folder = "", ROOTSTEP_BENCH_PEERS: peers = "" } = process.env;
const rounds = Number(flags.rounds);
const bodies: Bodies = { warmUp: 4000, perFlood: 6000, perPaced: 200, rounds };
const calls = Math.max(Number(flags.calls), bodiesNeeded(bodies));
/** LiteLLM's cache in memory keeps 200 answers. */
const LITELLM_CACHED = 48;

const began = performance.now();
const say = (text: string): void =>
  console.error(`${((performance.now() - began) / 1000).toFixed(0).padStart(4)} s  ${text}`);

const skipped: { name: string; why: string }[] = [];

/** What `make` gives, or undefined and a line that says why not. */
async function orSkip<T>(name: string, make: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await make();
  } catch (error) {
    const why = (error instanceof Error ? error.message : String(error)).trim().split("\n").at(-1) ?? "";
    skipped.push({ name, why });
    say(`skipped: ${name}: ${why}`);
    return undefined;
  }
}

async function installed(peer: string): Promise<string | undefined> {
  if (flags["no-peers"]) return undefined;
  say(`installing ${peer} unless it is there`);
  return orSkip(peer, () =>
    execFileSync(join(peers, "install.sh"), [peer], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 180_000,
    }).trim(),
  );
}

function inProcess(): Promise<InProcessRound[]> {
  say("in process");
  const child = fork(fileURLToPath(new URL("replay-in-process.js", import.meta.url)), [String(rounds)]);
  return new Promise((resolve, reject) => {
    child.once("message", (message: InProcessRound[]) => resolve(message));
    child.once("exit", (code) => (code === 0 ? undefined : reject(new Error(`in-process replay ended with ${code}`))));
  });
}

async function loading(tape: string): Promise<{ ms: number; cpuMs: number }[]> {
  const found: { ms: number; cpuMs: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    say(`loading ${calls} calls, ${round + 1} of ${rounds}`);
    const { loadMs = Number.NaN, loadCpuMs = Number.NaN, stop } = await startOwn("replay", tape);
    found.push({ ms: loadMs, cpuMs: loadCpuMs });
    await stop();
  }
  return found;
}

async function main(): Promise<Figures> {
  const loadBefore = loadavg()[0] ?? Number.NaN;
  const [tracefork, litellm] = [await installed("tracefork"), await installed("litellm")];
  const bare = await startOwn("bare");
  if (litellm !== undefined) say("starting LiteLLM, which takes a while");
  const litellmStarting =
    litellm === undefined ? undefined : orSkip("litellm", () => startLitellm(litellm, folder, bare));
  const tape = join(folder, "tape");
  say(`writing a tape of ${calls} calls`);
  writeBenchTape(tape, calls);
  const script = join(peers, "tracefork_tape.py");
  const traceforkTape =
    tracefork === undefined
      ? undefined
      : await orSkip("tracefork", () => writeTraceforkTape(tracefork, script, folder, calls));
  const litellmServer = await litellmStarting;

  const figuresInProcess = await inProcess();
  const figuresLoading = await loading(tape);

  const upstream = `http://127.0.0.1:${bare.target.port}/v1`;
  const contenders: Contender[] = [
    { name: "bare node:http", server: bare },
    { name: "rootstep replay", server: await startOwn("replay", tape) },
    { name: "rootstep record", server: await startOwn("record", join(folder, "recorded"), upstream) },
  ];
  if (tracefork !== undefined && traceforkTape !== undefined) {
    say("starting tracefork");
    const replay = await orSkip("tracefork replay", () => startTracefork(tracefork, traceforkTape));
    if (replay !== undefined) contenders.push({ name: "tracefork replay", server: replay, isPeer: true });
    const record = await orSkip("tracefork record", () => startTracefork(tracefork, join(folder, "new.sqlite"), bare));
    if (record !== undefined) contenders.push({ name: "tracefork record", server: record, isPeer: true });
  }
  if (litellmServer !== undefined) {
    contenders.push({ name: "LiteLLM cache", server: litellmServer, isPeer: true, warmedWith: LITELLM_CACHED });
    contenders.push({ name: "LiteLLM pass-through", server: litellmServer, isPeer: true });
  }
  const rows = await measureRounds(contenders, bodies, say);
  for (const { server } of contenders.slice(1)) if (server !== litellmServer) await server.stop();

  const memory = await measureMemory(Number(flags["memory-calls"]), join(folder, "memory"), bare, say);

  say("behaviour");
  const tools: Tool[] = [rootstepTool(folder, bare)];
  if (tracefork !== undefined) tools.push(traceforkTool(folder, tracefork, bare));
  if (litellmServer !== undefined) tools.push(litellmTool(litellmServer));
  const behaviour: Behaviour[] = [];
  for (const tool of tools) {
    const found = await orSkip(`behaviour of ${tool.name}`, () => behaviourOf(tool));
    if (found !== undefined) behaviour.push(found);
  }
  return {
    machine: {
      cpu: cpus()[0]?.model ?? "unknown",
      cores: availableParallelism(),
      memoryGb: totalmem() / 2 ** 30,
      system: `${platform()} ${arch()}`,
      node: process.version,
      loadBefore,
      loadAfter: loadavg()[0] ?? Number.NaN,
    },
    calls,
    bodies,
    inProcess: figuresInProcess,
    loading: figuresLoading,
    rows,
    memory,
    behaviour,
    skipped,
    seconds: (performance.now() - began) / 1000,
  };
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
process.once("exit", killAll);
const figures = await main();
if (flags.json !== undefined) writeFileSync(flags.json, `${JSON.stringify(figures, undefined, 1)}\n`);
printFigures(figures);
process.exit(0);
