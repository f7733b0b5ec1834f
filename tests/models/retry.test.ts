import { describe, expect, test } from "vitest";
import { RootstepError } from "../../src/errors.ts";
import { withRetry } from "../../src/models/retry.ts";
import { scriptedModel } from "../../src/models/scripted.ts";
import { type RandomStream, stream } from "../../src/random.ts";
import { manualClock } from "./manual-clock.ts";

const ask = { messages: [{ role: "user", content: "hello" }] } as const;
const busy = (retryAfterMs?: number) =>
  new RootstepError("MODEL_RATE_LIMITED", { what: "busy", where: "URL", retryAfterMs });
const always = (value: number): RandomStream => ({ ...stream(1), next: () => value });
const options = { attempts: 4, baseMs: 100, maxMs: 300, longestRetryAfterMs: 60_000 };

/** Runs a call to its end, letting the clock go on whenever it waits. */
async function run<T>(clock: ReturnType<typeof manualClock>, call: Promise<T>): Promise<T> {
  let over = false;
  const end = call.finally(() => {
    over = true;
  });
  end.catch(() => {});
  while (!over) await clock.advance(1_000_000);
  return end;
}

describe("retries", () => {
  test("wait between 0 and a bound that doubles up to its maximum, then give up with the last error", async () => {
    for (const [draw, expected] of [
      [1, [100, 200, 300]],
      [0.5, [50, 100, 150]],
      [0, [0, 0, 0]],
    ] as const) {
      const clock = manualClock();
      const model = scriptedModel([{ answer: busy() }]);
      const error = await run(clock, withRetry(model, options, clock, always(draw)).complete(ask)).catch((e) => e);
      expect(clock.waits).toEqual(expected);
      expect(model.requests).toHaveLength(4);
      expect(error).toMatchObject({ code: "MODEL_RATE_LIMITED", where: "URL", retryable: true });
      expect(error.what).toBe("busy (attempt 4, the last)");
    }
  });

  test("never wait less than Retry-After asks, and spread out on top of it", async () => {
    const clock = manualClock();
    const model = scriptedModel([busy(7000), busy(250), "answer"]);
    const answer = await run(clock, withRetry(model, options, clock, always(0.5)).complete(ask));
    expect(answer.content).toBe("answer");
    expect(clock.waits).toEqual([7000 + 50, 250 + 100]);
  });

  test("give up at once where the server asks for a wait beyond all measure", async () => {
    const clock = manualClock();
    const model = scriptedModel([busy(86_400_000), "answer"]);
    const error = await withRetry(model, options, clock)
      .complete(ask)
      .catch((e) => e);
    expect(error.what).toBe("busy; it asks for a wait of 86400 s (attempt 1, the last)");
    expect(model.requests).toHaveLength(1);
  });

  test("repeat only what another try can mend", async () => {
    const errors = [
      new RootstepError("MODEL_AUTH", { what: "no" }),
      new RootstepError("BUDGET_REACHED", { what: "no" }),
      new RootstepError("MODEL_BAD_BODY", { what: "no", retryable: false }),
      new TypeError("a bug"),
    ];
    for (const error of errors) {
      const model = scriptedModel([error, "answer"]);
      await expect(withRetry(model, options, manualClock()).complete(ask)).rejects.toBe(error);
      expect(model.requests).toHaveLength(1);
    }
  });

  test("are interrupted while they wait", async () => {
    const clock = manualClock();
    const controller = new AbortController();
    const model = scriptedModel([busy(5000), "answer"]);
    const call = withRetry(model, options, clock).complete(ask, { signal: controller.signal });
    const outcome = call.catch((e: unknown) => e);
    await clock.sleeping(1);
    controller.abort();
    expect(await outcome).toMatchObject({ code: "INTERRUPTED" });
    expect(model.requests).toHaveLength(1);
  });
});
