import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type RandomStream, stream } from "../../src/random.ts";
import { readRunStatus } from "../../synth/ledger/read.ts";
import { cli, freshPath, type Running, startCli } from "../cli/run-cli.ts";
import { type RedisServer, startRedis } from "../redis-server.ts";
import { digest } from "./killed-runs.ts";

export interface ChaosOptions {
  readonly seed: number;
  /** Rounds go on until so many processes were killed. */
  readonly kills: number;
  readonly workers: number;
  readonly say: (line: string) => void;
}

export interface ChaosResult {
  readonly kills: Readonly<Record<Target, number>>;
  readonly rounds: number;
  /** What differs from the undisturbed run, by round; empty if nothing was lost, doubled or counted twice. */
  readonly differences: readonly string[];
}

type Target = "coordinator" | "worker" | "redis";

const RUN = [
  ...["--tasks.set", "chain", "--tasks.limit", "10", "--model.regime", "systematic", "--model.hard-rate", "0.5"],
  ...["--model.noise", "0.02", "--search.strategies", "bayes", "paper"],
];
/** Where the seconds of the start and the ledger's own bookkeeping are. */
const MOVING = ["manifest.json", "ledger.sqlite"];
const READY: Readonly<Record<Exclude<Target, "redis">, string>> = { coordinator: "record: ", worker: "is ready for" };

/**
 * Runs the same synthesis over and over, on workers and a Redis of its own, and kills coordinator, workers and Redis with
 * SIGKILL at random moments; whatever was killed is started again. Every round must end with the files and the cost of an
 * undisturbed run. In every other round Redis has no persistence: its restart forgets all jobs.
 */
export async function runChaos({ seed, kills, workers, say }: ChaosOptions): Promise<ChaosResult> {
  const random = stream(seed, "chaos");
  const undisturbed = freshPath("undisturbed");
  const whole = await cli(["synth", "run", "--out", undisturbed, ...RUN]);
  if (whole.code !== 0) throw new Error(`the undisturbed run failed:\n${whole.stderr}`);
  const expected = { files: digest(undisturbed, MOVING), cost: costs(undisturbed) };

  const killed: Record<Target, number> = { coordinator: 0, worker: 0, redis: 0 };
  const total = (): number => killed.coordinator + killed.worker + killed.redis;
  const differences: string[] = [];
  let rounds = 0;
  while (total() < kills) {
    const out = freshPath(`round-${rounds}`);
    const persistence = rounds % 2 === 0 ? ["--appendonly", "yes", "--appendfsync", "everysec"] : [];
    const fault = (what: string): void => void differences.push(`round ${rounds}: ${what}`);
    await runRound({ out, persistence, workers, random, killed, fault, enough: () => total() >= kills });
    const files = digest(out, MOVING);
    const found = [
      ...expected.files.filter((file) => !files.includes(file)).map((file) => `missing or other: ${file}`),
      ...files.filter((file) => !expected.files.includes(file)).map((file) => `not expected: ${file}`),
      ...(costs(out) === expected.cost ? [] : [`cost ${costs(out)} instead of ${expected.cost}`]),
    ];
    differences.push(...found.map((difference) => `round ${rounds}: ${difference}`));
    say(`round ${rounds}: ${total()} of ${kills} kills ${JSON.stringify(killed)}, ${found.length} differences`);
    if (found.length === 0) rmSync(dirname(out), { recursive: true });
    rounds++;
  }
  rmSync(dirname(undisturbed), { recursive: true });
  return { kills: killed, rounds, differences };
}

/** Cost by stage: units, calls, tokens. */
function costs(folder: string): string {
  return JSON.stringify(readRunStatus(folder).stages.map(({ stage, units, cost }) => ({ stage, units, cost })));
}

interface Round {
  readonly out: string;
  readonly persistence: readonly string[];
  readonly workers: number;
  readonly random: RandomStream;
  readonly killed: Record<Target, number>;
  /** Hears of a process that ended by itself for no good reason. */
  fault(what: string): void;
  enough(): boolean;
}

async function runRound({ out, persistence, workers, random, killed, fault, enough }: Round): Promise<void> {
  const redis = await startRedis(persistence);
  const startWorker = (): Running =>
    startCli(["worker", "--redis", redis.url, "--concurrency", "2", "--lease", "1", "--grace", "0"]);
  const startCoordinator = (): Running => startCli(["synth", "run", "--out", out, "--redis", redis.url, ...RUN]);
  const crew = Array.from({ length: workers }, startWorker);
  let coordinator = startCoordinator();
  let over = false;

  /** Starts the coordinator again whenever it ends before the work does. */
  const coordinating = (async () => {
    for (;;) {
      const { code, signal, stderr } = await coordinator.finished;
      if (code === 0) break;
      if (signal !== "SIGKILL" && !stderr.includes("error REDIS_UNREACHABLE")) {
        throw new Error(`the coordinator ended with ${code ?? signal}:\n${stderr}`);
      }
      coordinator = startCoordinator();
    }
  })().finally(() => {
    over = true;
  });

  const killing = (async () => {
    while (!over && !enough()) {
      for (const target of moment(random)) {
        if (over || enough()) return;
        const index = random.int(workers);
        const victim = target === "coordinator" ? coordinator : crew[index];
        // Mostly while it is at work, sometimes while it starts.
        if (target !== "redis" && victim !== undefined && random.chance(0.8)) {
          await Promise.race([victim.seen(READY[target]).catch(() => undefined), coordinating]);
        }
        await sleep(random.int(250));
        if (over) return;
        if (target === "redis") killed.redis += await killRedis(redis);
        else if (victim !== undefined) {
          killed[target] += await killProcess(victim);
          if (target === "worker") crew[index] = startWorker();
        }
      }
    }
  })();

  try {
    await Promise.all([coordinating, killing, keepWorkers(crew, startWorker, () => over, fault)]);
  } finally {
    over = true;
    for (const process of [coordinator, ...crew]) await killProcess(process);
    await redis.stop();
  }
}

/** What dies at one moment: mostly one process, sometimes two. */
function moment(random: RandomStream): Target[] {
  const one = (): Target => random.pick(["coordinator", "worker", "redis"] as const);
  return random.chance(0.25) ? [one(), one()] : [one()];
}

/** Workers that could not start because Redis was away are started again. */
async function keepWorkers(
  crew: Running[],
  start: () => Running,
  over: () => boolean,
  fault: Round["fault"],
): Promise<void> {
  while (!over()) {
    await sleep(100);
    for (const [index, worker] of crew.entries()) {
      if (over() || worker.child.exitCode === null) continue;
      const { code, stderr } = await worker.finished;
      if (!stderr.includes("error REDIS_UNREACHABLE")) fault(`a worker ended with ${code}: ${stderr}`);
      crew[index] = start();
    }
  }
}

/** @returns 1 if it lived and was ended by the signal */
async function killProcess({ child, finished }: Running): Promise<number> {
  child.kill("SIGKILL");
  return Number((await finished).signal === "SIGKILL");
}

async function killRedis(redis: RedisServer): Promise<number> {
  await redis.kill();
  await redis.restart();
  return 1;
}
