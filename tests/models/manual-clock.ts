import { untilInterrupted } from "../../src/interruption.ts";
import type { Clock } from "../../src/models/clock.ts";

export interface ManualClock extends Clock {
  /** Every wait asked for, in order. */
  readonly waits: readonly number[];
  /** Lets time pass, waking sleepers in the order of their times. */
  advance(ms: number): Promise<void>;
  /** Resolves when that many sleepers wait. */
  sleeping(n: number): Promise<void>;
}

/** Lets everything that is ready to run do so. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A clock that stands still until it is told to go on. */
export function manualClock(start = 0): ManualClock {
  let now = start;
  const waits: number[] = [];
  let sleepers: { at: number; wake: () => void }[] = [];
  return {
    waits,
    now: () => now,
    sleep(ms, signal) {
      waits.push(ms);
      const nap = new Promise<void>((wake) => sleepers.push({ at: now + ms, wake }));
      return untilInterrupted(nap, signal);
    },
    async advance(ms) {
      const end = now + ms;
      for (;;) {
        await settled();
        const next = sleepers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
        if (next === undefined) break;
        now = Math.max(now, next.at);
        sleepers = sleepers.filter((sleeper) => sleeper !== next);
        next.wake();
      }
      now = end;
    },
    async sleeping(n) {
      while (sleepers.length < n) await settled();
    },
  };
}
