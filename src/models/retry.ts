import { RootstepError } from "../errors.ts";
import { throwIfInterrupted } from "../interruption.ts";
import { type RandomStream, stream } from "../random.ts";
import type { ChatModel } from "./chat-model.ts";
import { type Clock, systemClock } from "./clock.ts";

export interface RetryOptions {
  /** Requests in all, the first included. */
  readonly attempts: number;
  /** Upper end of the first wait, doubled for each further one. */
  readonly baseMs: number;
  /** Upper end of any wait of our own choosing. */
  readonly maxMs: number;
  /** A server that asks (Retry-After) for a longer wait than this is not waited for. */
  readonly longestRetryAfterMs: number;
}

export const DEFAULT_RETRY: RetryOptions = {
  attempts: 6,
  baseMs: 500,
  maxMs: 30_000,
  longestRetryAfterMs: 600_000,
};

/**
 * Asks again after a failure that another try can mend, waiting with full jitter: uniform in [0, min(maxMs, baseMs·2^k)),
 * on top of what the server asked for. A listener hears the pieces of a repeated stream again from the start.
 *
 * @param random draws the waits. They change no answer, so by default they differ from process to process: workers that
 *   drew the same waits would all come back at once.
 */
export function withRetry(
  model: ChatModel,
  options: Partial<RetryOptions> = {},
  clock: Clock = systemClock,
  random: RandomStream = stream(process.pid, "retry", model.id),
): ChatModel {
  const { attempts, baseMs, maxMs, longestRetryAfterMs } = { ...DEFAULT_RETRY, ...options };
  return {
    id: model.id,
    async complete(request, callOptions) {
      for (let attempt = 1; ; attempt++) {
        throwIfInterrupted(callOptions?.signal);
        try {
          return await model.complete(request, callOptions);
        } catch (error) {
          if (!(error instanceof RootstepError) || !error.retryable) throw error;
          const asked = error.retryAfterMs ?? 0;
          if (asked > longestRetryAfterMs) {
            throw afterAttempts(error, attempt, `; it asks for a wait of ${Math.ceil(asked / 1000)} s`);
          }
          if (attempt >= attempts) throw afterAttempts(error, attempt, "");
          const jitter = random.next() * Math.min(maxMs, baseMs * 2 ** (attempt - 1));
          await clock.sleep(asked + jitter, callOptions?.signal);
        }
      }
    },
  };
}

/** The last error again, saying how often it was tried. */
function afterAttempts(error: RootstepError, attempts: number, addition: string): RootstepError {
  return new RootstepError(error.code, {
    what: `${error.what}${addition} (attempt ${attempts}, the last)`,
    where: error.where,
    hint: error.hint,
    cause: error.cause,
    retryAfterMs: error.retryAfterMs,
    retryable: error.retryable,
  });
}
