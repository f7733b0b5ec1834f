import type { EndedJob } from "./queue.ts";

/** Ended jobs between the one who ends them and the one who takes them. */
export interface OutcomeBuffer {
  put(job: EndedJob): void;
  /** Makes whoever waits look again, though nothing has ended. */
  wake(): void;
  take(atMostMs: number, signal?: AbortSignal): Promise<EndedJob[]>;
}

export function createOutcomeBuffer(): OutcomeBuffer {
  let ended: EndedJob[] = [];
  let wake = (): void => {};
  return {
    put(job) {
      ended.push(job);
      wake();
    },
    wake: () => wake(),
    async take(atMostMs, signal) {
      if (ended.length === 0 && atMostMs > 0 && signal?.aborted !== true) {
        await new Promise<void>((resolve) => {
          const done = (): void => {
            clearTimeout(timer);
            signal?.removeEventListener("abort", done);
            resolve();
          };
          const timer = setTimeout(done, atMostMs);
          signal?.addEventListener("abort", done, { once: true });
          wake = done;
        });
      }
      const taken = ended;
      ended = [];
      return taken;
    },
  };
}
