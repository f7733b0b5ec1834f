import pLimit from "p-limit";
import { throwIfInterrupted, untilInterrupted } from "../interruption.ts";
import type { ChatModel } from "./chat-model.ts";
import { type Clock, systemClock } from "./clock.ts";

export interface LimiterOptions {
  /** Calls at the same time. */
  readonly concurrency: number;
  /** Calls begun within any 60 seconds. */
  readonly requestsPerMinute?: number | undefined;
}

const MINUTE = 60_000;

/** Lets through so many calls at a time, and so many a minute; the others wait in the order in which they came. */
export function withLimiter(model: ChatModel, options: LimiterOptions, clock: Clock = systemClock): ChatModel {
  const slots = pLimit(options.concurrency);
  const nextStart = options.requestsPerMinute === undefined ? undefined : window(options.requestsPerMinute, clock);
  return {
    id: model.id,
    complete(request, callOptions) {
      const signal = callOptions?.signal;
      const call = slots(async () => {
        throwIfInterrupted(signal, model.id);
        await nextStart?.(signal);
        return model.complete(request, callOptions);
      });
      // An interrupted call leaves the queue at once; its slot, when it comes, is given back unused.
      return untilInterrupted(call, signal, model.id);
    },
  };
}

/** A sliding window: resolves when another call may begin. */
function window(perMinute: number, clock: Clock): (signal: AbortSignal | undefined) => Promise<void> {
  const starts: number[] = [];
  const oneByOne = pLimit(1);
  return (signal) =>
    oneByOne(async () => {
      throwIfInterrupted(signal);
      const oldest = starts.length < perMinute ? undefined : starts[0];
      if (oldest !== undefined) {
        for (let wait = oldest + MINUTE - clock.now(); wait > 0; wait = oldest + MINUTE - clock.now()) {
          await clock.sleep(wait, signal);
        }
        starts.shift();
      }
      starts.push(clock.now());
    });
}
