import { type ChildProcess, execFileSync, fork, spawn } from "node:child_process";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Target } from "./replay-load.ts";
import { answerOf, bodyOf, RUN, TOKEN } from "./replay-tape.ts";

export interface Usage {
  /** User and system time of the process so far; undefined where it cannot be read. */
  readonly cpuMicros: number | undefined;
  readonly rssBytes: number | undefined;
  /** Only of rootstep's own servers. */
  readonly heapBytes?: number | undefined;
  /** Requests answered, of the bare server. */
  readonly served?: number | undefined;
}

export interface Server {
  readonly target: Target;
  /** Milliseconds to open the tape, of a replay. */
  readonly loadMs?: number | undefined;
  readonly loadCpuMs?: number | undefined;
  /** @param collect after a garbage collection, where the process allows one */
  usage(collect?: boolean): Promise<Usage>;
  /** With SIGINT, so that a peer saves what it recorded; killed after 30 s. */
  stop(): Promise<void>;
}

interface Message extends Partial<Usage> {
  readonly port?: number;
  readonly loadMs?: number;
  readonly loadCpuMs?: number;
}

const running = new Set<ChildProcess>();

/** Ends whatever is still running, at once. */
export function killAll(): void {
  for (const child of running) child.kill("SIGKILL");
}

function tracked(child: ChildProcess): ChildProcess {
  running.add(child);
  child.once("exit", () => running.delete(child));
  return child;
}

/** One of rootstep's own servers, or the bare one. `args`: the tape's folder, then the upstream's base URL. */
export async function startOwn(kind: "bare" | "replay" | "record", ...args: readonly string[]): Promise<Server> {
  const child = tracked(
    fork(fileURLToPath(new URL("replay-server.js", import.meta.url)), [kind, ...args], { execArgv: ["--expose-gc"] }),
  );
  let load: Message = {};
  const port = await new Promise<number>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the ${kind} server ended with code ${code}`)));
    child.on("message", (message: Message) => {
      if (message.loadMs !== undefined) load = message;
      if (message.port !== undefined) resolve(message.port);
    });
  });
  const path = kind === "bare" ? "/v1/chat/completions" : `/r/${RUN}/a/solver/v1/chat/completions`;
  return {
    target: { port, path, token: TOKEN },
    loadMs: load.loadMs,
    loadCpuMs: load.loadCpuMs,
    usage: (collect = false) =>
      new Promise((resolve) => {
        child.once("message", ({ cpuMicros, rssBytes, heapBytes, served }: Message) =>
          resolve({ cpuMicros, rssBytes, heapBytes, served }),
        );
        child.send(collect ? "collect" : "usage");
      }),
    stop: () => stopped(child),
  };
}

const PEER_TARGET = { path: "/v1/chat/completions", token: TOKEN };

/** tracefork's proxy, replaying a tape (no upstream) or recording one. */
export function startTracefork(venv: string, tape: string, upstream?: Server): Promise<Server> {
  const more = upstream === undefined ? [] : ["--upstream", `http://127.0.0.1:${upstream.target.port}`];
  const mode = upstream === undefined ? "replay" : "record";
  return startPeer(join(venv, "bin", "tracefork"), ["proxy", mode, "--tape", tape, ...more], dirname(tape));
}

/** LiteLLM's proxy with its cache in memory, no authentication, no database. */
export function startLitellm(venv: string, folder: string, upstream: Server): Promise<Server> {
  const config = {
    model_list: ["bench-model", "busy"].map((name) => ({
      model_name: name,
      litellm_params: {
        model: `openai/${name}`,
        api_base: `http://127.0.0.1:${upstream.target.port}/v1`,
        api_key: TOKEN,
        max_retries: 0,
      },
    })),
    // It does not start without a key otherwise; checking none costs it less.
    general_settings: { dangerously_permit_weak_or_unset_master_key: true },
    litellm_settings: { cache: true, cache_params: { type: "local" }, num_retries: 0 },
    router_settings: { num_retries: 0, disable_cooldowns: true },
  };
  const file = join(folder, "litellm.yaml");
  writeFileSync(file, JSON.stringify(config)); // JSON is YAML
  const args = ["--config", file, "--host", "127.0.0.1", "--num_workers", "1", "--telemetry", "False"];
  return startPeer(join(venv, "bin", "litellm"), args, folder);
}

/** The price list is otherwise fetched from the network. */
const PEER_ENVIRONMENT = { LITELLM_LOCAL_MODEL_COST_MAP: "True", LITELLM_LOG: "ERROR", PYTHONDONTWRITEBYTECODE: "1" };

const START_LIMIT_MS = 240_000;

async function startPeer(command: string, args: readonly string[], cwd: string): Promise<Server> {
  const port = await freePort();
  const env = { ...process.env, ...PEER_ENVIRONMENT };
  const child = tracked(
    spawn(command, [...args, "--port", String(port)], { cwd, env, stdio: ["ignore", "pipe", "pipe"] }),
  );
  let told = "";
  const keep = (part: Buffer): void => {
    told = (told + part.toString("utf8")).slice(-2000);
  };
  child.stdout?.on("data", keep);
  child.stderr?.on("data", keep);
  let ended = false;
  child.once("exit", () => {
    ended = true;
  });
  child.once("error", (error) => {
    ended = true;
    told = error.message;
  });
  const start = performance.now();
  while (!(await answers(port))) {
    if (ended) throw new Error(`${command} ended before it served: ${told}`);
    if (performance.now() - start > START_LIMIT_MS) throw new Error(`${command} does not serve: ${told}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return {
    target: { port, ...PEER_TARGET },
    loadMs: performance.now() - start,
    usage: async () => usageOf(child.pid ?? 0),
    stop: () => stopped(child),
  };
}

/** Of another process, on Linux. */
function usageOf(pid: number): Usage {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    const ticks = Number(fields[11]) + Number(fields[12]);
    const pages = Number(fields[21]);
    return { cpuMicros: ticks * 10_000, rssBytes: pages * 4096 };
  } catch {
    return { cpuMicros: undefined, rssBytes: undefined };
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** Peers take no port 0. */
function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

function stopped(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    const limit = setTimeout(() => child.kill("SIGKILL"), 30_000);
    child.once("exit", () => {
      clearTimeout(limit);
      resolve();
    });
    child.kill("SIGINT");
  });
}

/** Writes the bench tape's calls as a tracefork tape, with tracefork's own library. */
export function writeTraceforkTape(venv: string, script: string, folder: string, calls: number): string {
  const [exchanges, tape] = [join(folder, "exchanges.jsonl"), join(folder, "bench.tape.sqlite")];
  writeFileSync(exchanges, "");
  for (let from = 0; from < calls; from += 5000) {
    const some = Array.from({ length: Math.min(5000, calls - from) }, (_, index) => from + index);
    appendFileSync(exchanges, some.map((index) => `${JSON.stringify([bodyOf(index), answerOf(index)])}\n`).join(""));
  }
  execFileSync(join(venv, "bin", "python"), [script, exchanges, tape], { stdio: ["ignore", "ignore", "inherit"] });
  return tape;
}
