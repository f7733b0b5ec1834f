/**
 * One client of the fake model server, in a process of its own: the bare undici loop, or `eval run` as the command line runs
 * it (cache, budget, retries, journal, progress). Both are measured from their first answer to their last.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, request } from "undici";
import { evalRun } from "../../src/cli/eval.ts";
import { dataChoiceSchema, loadData } from "../../src/evaluation/data.ts";
import { evaluate } from "../../src/evaluation/run.ts";
import { methodById } from "../../src/methods/registry.ts";
import { wireBody } from "../../src/models/wire.ts";

/** What a client is told, as JSON in its one argument. */
export interface ClientTask {
  readonly kind: "bare" | "eval-run";
  readonly baseUrl: string;
  readonly concurrency: number;
  /** A folder like Who&When; the shipped Algorithm-Generated logs unless given. */
  readonly folder?: string;
  readonly epochs: number;
}

export interface ClientFigures {
  readonly calls: number;
  readonly seconds: number;
  /** Processor time of the client's process, all threads, in microseconds. */
  readonly cpu: number;
}

/** Counts answers; what comes before the first one (loading, connecting) is not measured. */
function meter(total: number) {
  let calls = 0;
  let began = { at: 0, cpu: process.cpuUsage() };
  let figures: ClientFigures | undefined;
  return {
    answered(): void {
      calls++;
      if (calls === 1) began = { at: performance.now(), cpu: process.cpuUsage() };
      if (calls !== total) return;
      const { user, system } = process.cpuUsage(began.cpu);
      figures = { calls: calls - 1, seconds: (performance.now() - began.at) / 1000, cpu: user + system };
    },
    figures(): ClientFigures {
      if (figures === undefined) throw new RangeError(`${calls} of ${total} answers`);
      return figures;
    },
  };
}

const OPTIONS = { method: "all-at-once", withReference: false } as const;

async function bare(task: ClientTask): Promise<ClientFigures> {
  const bodies = await bodiesOf(task);
  const total = bodies.length * task.epochs;
  const { answered, figures } = meter(total);
  const dispatcher = new Agent({ connections: task.concurrency });
  let next = 0;
  const loop = async (): Promise<void> => {
    while (next < total) {
      const body = bodies[next++ % bodies.length] ?? "";
      const answer = await request(`${task.baseUrl}/chat/completions`, {
        method: "POST",
        dispatcher,
        headers: { "content-type": "application/json" },
        body,
      });
      await answer.body.json();
      answered();
    }
  };
  await Promise.all(Array.from({ length: task.concurrency }, loop));
  await dispatcher.close();
  return figures();
}

/** The bodies that an evaluation sends, caught on the way, as text: the bare loop has them ready. */
async function bodiesOf({ folder, concurrency }: ClientTask): Promise<string[]> {
  const { items } = await loadData(dataChoiceSchema.parse({ folder, subset: "algorithm-generated" }));
  const bodies: string[] = [];
  const model = {
    id: "catcher",
    complete: async (asked: Parameters<typeof wireBody>[0]) => {
      bodies.push(wireBody(asked, { model: "m", stream: false }).toString("utf8"));
      return { content: "", toolCalls: [], finishReason: "stop" as const, model: "catcher" };
    },
  };
  const method = methodById(OPTIONS.method).configure();
  await evaluate({ items, method, withReference: false, concurrency, context: { model, seed: 1 } });
  return bodies;
}

async function evaluation({ baseUrl, concurrency, folder, epochs }: ClientTask): Promise<ClientFigures> {
  const out = mkdtempSync(join(tmpdir(), "rootstep-bench-"));
  const config = {
    ...OPTIONS,
    data: { folder, subset: "algorithm-generated" },
    epochs,
    concurrency,
    model: { provider: "openai-compatible", baseUrl, model: "m", stream: false, concurrency },
  };
  let measured: ReturnType<typeof meter> | undefined;
  await evalRun.start(
    (schema) => schema.parse(config),
    { out },
    {
      env: {},
      now: () => new Date(),
      signal: new AbortController().signal,
      progress: {
        stage: (_, total) => {
          const stage = meter(total);
          measured = stage;
          return { advance: () => stage.answered(), finish() {} };
        },
        note() {},
      },
      json: false,
      dryRun: false,
      version: "bench",
      print() {},
      printLine() {},
    },
  );
  rmSync(out, { recursive: true });
  if (measured === undefined) throw new RangeError("nothing was run");
  return measured.figures();
}

const task: ClientTask = JSON.parse(process.argv[2] ?? "");
process.send?.(task.kind === "bare" ? await bare(task) : await evaluation(task));
process.disconnect?.();
