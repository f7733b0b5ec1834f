import { RootstepError } from "../../src/errors.ts";
import type { Cost } from "../ledger/cost.ts";
import type { Kept } from "../ledger/kept.ts";
import type { Job } from "./queue.ts";

export interface WorkOptions {
  readonly signal: AbortSignal;
  readonly onPart: (part: Kept) => void;
}

/** Does the work of one job. @throws RootstepError whatever the work throws */
export type ExecuteJob = (job: Job, options: WorkOptions) => Promise<{ readonly record: unknown; readonly cost: Cost }>;

/**
 * The work with a time limit of its own: after it the signal aborts, and the job fails whether the work heeds that or not.
 *
 * @throws RootstepError JOB_TIMEOUT
 */
export function withTimeLimit(execute: ExecuteJob, limitMs: number): ExecuteJob {
  return async (job, { signal, onPart }) => {
    const limit = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const expired = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const error = new RootstepError("JOB_TIMEOUT", {
          what: `the unit took longer than ${limitMs / 1000} s`,
          where: `${job.stage} ${job.key}`,
        });
        limit.abort(error);
        reject(error);
      }, limitMs);
    });
    try {
      const work = execute(job, { onPart, signal: AbortSignal.any([signal, limit.signal]) });
      return await Promise.race([work, expired]);
    } finally {
      clearTimeout(timer);
    }
  };
}
