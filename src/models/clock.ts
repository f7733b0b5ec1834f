import { untilInterrupted } from "../interruption.ts";

/** Time as a parameter: waits and windows are tested with a clock that does not run by itself. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after that many milliseconds. @throws RootstepError INTERRUPTED when the signal aborts first */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: async (ms, signal) => {
    let timer: NodeJS.Timeout | undefined;
    try {
      await untilInterrupted(
        new Promise<void>((resolve) => {
          timer = setTimeout(resolve, ms);
        }),
        signal,
      );
    } finally {
      clearTimeout(timer);
    }
  },
};
