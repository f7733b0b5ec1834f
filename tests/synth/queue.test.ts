import { describe, expect, it } from "vitest";
import { type ErrorCode, RootstepError } from "../../src/errors.ts";
import { stream } from "../../src/random.ts";
import { judge, MAX_ATTEMPTS } from "../../synth/queue/failure-policy.ts";
import { inProcessQueue } from "../../synth/queue/in-process.ts";
import { errorOf, failureOf, type Job } from "../../synth/queue/queue.ts";
import { withTimeLimit } from "../../synth/queue/work.ts";
import { queueConformance } from "./queue.conformance.ts";

queueConformance("in-process", async (execute) => {
  const queue = inProcessQueue({ concurrency: 2, execute, onPart: () => {} });
  return { queue, close: () => queue.close() };
});

describe("what is done about a failure", () => {
  const random = () => stream(1, "test");
  const of = (code: ErrorCode, more = {}) => failureOf(new RootstepError(code, { what: "x", ...more }));

  it("buries what no other try can mend, at once", () => {
    for (const code of [
      "REPLAY_DIVERGED",
      "TAPE_EXHAUSTED",
      "MODEL_REFUSED_REQUEST",
      "JOB_VERSION",
      "INTERNAL",
    ] as const) {
      expect([code, judge(of(code), "w", 0, random()).kind]).toEqual([code, "bury"]);
    }
  });

  it("tries again what another try can mend, so many times, waiting longer each time with full jitter", () => {
    const waits = (attempts: number): number[] =>
      Array.from({ length: 400 }, (_, draw) => {
        const verdict = judge(of("MODEL_SERVER_ERROR"), "w", attempts, stream(7, attempts, draw));
        return verdict.kind === "try again" ? verdict.delayMs : Number.NaN;
      });
    const mean = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0) / numbers.length;
    // Uniform in [0, 1000·2^k): mean 500·2^k; 400 draws put the mean within 10% at 3.5 sigma.
    expect(mean(waits(0)) / 500).toBeCloseTo(1, 0.5);
    expect(mean(waits(1)) / 1000).toBeCloseTo(1, 0.5);
    expect(Math.max(...waits(0))).toBeLessThan(1000);
    expect(Math.min(...waits(0))).toBeLessThan(50);
    expect(judge(of("MODEL_SERVER_ERROR"), "w", MAX_ATTEMPTS - 1, random()).kind).toBe("bury");
  });

  it("never waits shorter than the server asked for", () => {
    const verdict = judge(of("MODEL_RATE_LIMITED", { retryAfterMs: 30_000 }), "w", 0, random());
    expect(verdict).toMatchObject({ kind: "try again" });
    expect(verdict.kind === "try again" && verdict.delayMs).toBeGreaterThanOrEqual(30_000);
  });

  it("stops the run for what concerns every unit, and gives back what was interrupted", () => {
    for (const code of ["MODEL_AUTH", "KEY_MISSING", "BUDGET_REACHED", "FILE_UNREADABLE"] as const) {
      expect([code, judge(of(code), "w", 0, random()).kind]).toEqual([code, "stop"]);
    }
    expect(judge(of("INTERRUPTED"), "w", 0, random())).toEqual({ kind: "give back" });
  });

  it("names the worker, and takes a code of another version for INTERNAL", () => {
    const error = errorOf({ ...of("MODEL_TIMEOUT"), code: "FROM_THE_FUTURE" }, "host-1");
    expect([error.code, error.where]).toEqual(["INTERNAL", "worker host-1"]);
  });
});

describe("the time limit of a job", () => {
  const job: Job = { id: "j", stage: "search", key: "k", payload: null, kept: [] };

  it("aborts the work, and fails the job though the work does not listen", async () => {
    let heard: unknown;
    const deaf = withTimeLimit((_, { signal }) => {
      signal.addEventListener("abort", () => {
        heard = signal.reason;
      });
      return new Promise(() => {}); // hangs for ever
    }, 20);
    const options = { signal: new AbortController().signal, onPart: () => {} };
    await expect(deaf(job, options)).rejects.toMatchObject({ code: "JOB_TIMEOUT", retryable: true });
    expect(heard).toMatchObject({ code: "JOB_TIMEOUT" });
  });
});
