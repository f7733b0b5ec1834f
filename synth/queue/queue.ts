import { z } from "zod";
import { CATALOGUE, type ErrorCode, RootstepError } from "../../src/errors.ts";
import { costSchema } from "../ledger/cost.ts";
import { keptSchema } from "../ledger/kept.ts";

/** One unit of a stage to be worked on. The id names the lease: run, stage, unit and fence. */
export interface Job {
  readonly id: string;
  readonly stage: string;
  readonly key: string;
  readonly payload: unknown;
  /** Parts that earlier attempts have finished. */
  readonly kept: readonly z.infer<typeof keptSchema>[];
}

/** An error as it travels between processes. */
export const failureSchema = z.object({
  code: z.string(),
  what: z.string(),
  where: z.string().exactOptional(),
  hint: z.string(),
  retryable: z.boolean(),
  retryAfterMs: z.number().exactOptional(),
});
export type Failure = z.infer<typeof failureSchema>;

const worker = z.string();
const parts = z.array(keptSchema).describe("parts finished in this attempt");

/** What became of a job. */
export const jobOutcomeSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("done"), record: z.unknown(), cost: costSchema, parts, worker }),
  z.object({ kind: z.literal("failed"), failure: failureSchema, parts, worker }),
  /** The worker died, or the queue has forgotten the job. `worker: true` where it died over this job. */
  z.object({ kind: z.literal("lost"), reason: z.string(), workerDied: z.boolean(), parts }),
]);
export type JobOutcome = z.infer<typeof jobOutcomeSchema>;

export interface EndedJob {
  readonly id: string;
  readonly outcome: JobOutcome;
  /** The error itself where the work ran in this process. */
  readonly error?: RootstepError;
}

/** A worker as the coordinator sees it. */
export const workerInfoSchema = z.object({
  id: z.string(),
  host: z.string(),
  pid: z.number(),
  version: z.string(),
  slots: z.number(),
});
export type WorkerInfo = z.infer<typeof workerInfoSchema>;

/**
 * Where units go to be worked on. A job runs at least once; that its result counts once is the ledger's business.
 * Implementations pass `tests/synth/queue.conformance.ts`.
 */
export interface JobQueue {
  /** Jobs worth having with the workers at a time. */
  window(): number;
  /** Hands jobs over. One whose id is known already is not added again. @throws RootstepError REDIS_FULL */
  submit(jobs: readonly Job[]): Promise<void>;
  /** Jobs that have ended since the last call; waits for the first, at most so many milliseconds, or until the signal aborts. */
  take(atMostMs: number, signal?: AbortSignal): Promise<EndedJob[]>;
  /** The coordinator has put this in its ledger: traces of the job may go. */
  settle(id: string): Promise<void>;
  /**
   * Stops handing out. What runs in this process ends first and can be taken; what waits elsewhere is withdrawn; what
   * other hosts work on goes on, and its result is found by a coordinator that submits the same job again.
   */
  stop(): Promise<void>;
  workers(): Promise<WorkerInfo[]>;
  close(): Promise<void>;
}

export function failureOf(error: RootstepError): Failure {
  const { code, what, where, hint, retryable, retryAfterMs } = error;
  return {
    code,
    what,
    hint,
    retryable,
    ...(where === undefined ? {} : { where }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

/** The error again, of the code it had; a code that this version does not know becomes INTERNAL. */
export function errorOf(failure: Failure, worker: string): RootstepError {
  const code: ErrorCode = isCode(failure.code) ? failure.code : "INTERNAL";
  const { what, hint, retryable, retryAfterMs } = failure;
  return new RootstepError(code, {
    what,
    where: [failure.where, worker === "" ? undefined : `worker ${worker}`]
      .filter((part) => part !== undefined)
      .join("; "),
    hint,
    retryable,
    retryAfterMs,
  });
}

function isCode(code: string): code is ErrorCode {
  return Object.hasOwn(CATALOGUE, code);
}
