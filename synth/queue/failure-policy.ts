import type { RootstepError } from "../../src/errors.ts";
import { CATALOGUE } from "../../src/errors.ts";
import type { RandomStream } from "../../src/random.ts";
import { errorOf, type Failure } from "./queue.ts";

/** Attempts at a unit whose failures another try may mend; each call within it has retries of its own already. */
export const MAX_ATTEMPTS = 3;
/** Workers that may die over one unit before it is suspected of killing them. */
export const MAX_LOSSES = 20;
const BASE_MS = 1000;
const LONGEST_MS = 60_000;

/** What is done about a unit that failed. */
export type Verdict =
  | { readonly kind: "stop"; readonly error: RootstepError }
  | { readonly kind: "give back" }
  | { readonly kind: "try again"; readonly delayMs: number }
  | { readonly kind: "bury" };

/**
 * What cannot be mended by another try is buried at once (a divergence, a refused request); what can is tried again after
 * a wait with full jitter, never shorter than the server asked for; what concerns every unit alike (a key, a full disk, a
 * used-up budget) stops the run.
 *
 * @param attempts failed attempts at this unit before this one
 */
export function judge(failure: Failure, worker: string, attempts: number, random: RandomStream): Verdict {
  const error = errorOf(failure, worker);
  if (error.code === "INTERRUPTED") return { kind: "give back" };
  if (error.code === "BUDGET_REACHED" || concernsAll(error)) return { kind: "stop", error };
  if (!error.retryable || attempts + 1 >= MAX_ATTEMPTS) return { kind: "bury" };
  const jitter = random.next() * Math.min(LONGEST_MS, BASE_MS * 2 ** attempts);
  return { kind: "try again", delayMs: (error.retryAfterMs ?? 0) + jitter };
}

/** Errors of this unit alone, though their side is the user's. */
const OF_ONE_UNIT: ReadonlySet<string> = new Set(["JOB_VERSION", "TASKS_DIFFER"]);

function concernsAll({ code }: RootstepError): boolean {
  if (OF_ONE_UNIT.has(code)) return false;
  return CATALOGUE[code].side === "user" || code === "FILE_UNREADABLE" || code === "RUN_CORRUPT";
}
