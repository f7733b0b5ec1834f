import { setMaxListeners } from "node:events";
import { asRootstepError } from "../../src/errors.ts";
import type { Kept } from "../ledger/kept.ts";
import { createOutcomeBuffer } from "./outcome-buffer.ts";
import { failureOf, type Job, type JobQueue } from "./queue.ts";
import type { ExecuteJob } from "./work.ts";

export interface InProcessOptions {
  readonly concurrency: number;
  readonly execute: ExecuteJob;
  /** Hears of every finished part at once, so that the death of this process does not cost it. */
  readonly onPart: (job: Job, part: Kept) => void;
  readonly signal?: AbortSignal;
}

/** The default: units run in this process, so many at a time. */
export function inProcessQueue({ concurrency, execute, onPart, signal }: InProcessOptions): JobQueue {
  const ended = createOutcomeBuffer();
  const worker = "in-process";
  const waiting: Job[] = [];
  const running = new Map<string, Promise<void>>();
  let stopped = false;
  const interrupted = signal ?? new AbortController().signal;
  setMaxListeners(0, interrupted);

  async function work(job: Job): Promise<void> {
    await new Promise(setImmediate); // lets signals and timers in between units that never wait
    const parts: Kept[] = [];
    const onKept = (part: Kept): void => {
      parts.push(part);
      onPart(job, part);
    };
    try {
      const { record, cost } = await execute(job, { signal: interrupted, onPart: onKept });
      ended.put({ id: job.id, outcome: { kind: "done", record, cost, parts, worker } });
    } catch (thrown) {
      const error = asRootstepError(thrown);
      ended.put({ id: job.id, outcome: { kind: "failed", failure: failureOf(error), parts, worker }, error });
    }
  }

  function fill(): void {
    while (!stopped && running.size < concurrency) {
      const job = waiting.shift();
      if (job === undefined) return;
      const done = work(job).then(() => {
        running.delete(job.id);
        fill();
      });
      running.set(job.id, done);
    }
  }

  return {
    window: () => concurrency,
    async submit(jobs) {
      waiting.push(...jobs.filter(({ id }) => !running.has(id) && !waiting.some((other) => other.id === id)));
      fill();
    },
    take: (atMostMs, abort) => ended.take(atMostMs, abort),
    settle: async () => {},
    async stop() {
      stopped = true;
      waiting.length = 0;
      await Promise.all(running.values());
    },
    workers: async () => [],
    close: async () => {},
  };
}
