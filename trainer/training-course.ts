import { existsSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { asRootstepError, isError } from "../src/errors.ts";
import { isAlive } from "../src/is-alive.ts";
import { appendRecord } from "./jsonl.ts";
import { ratioSchema } from "./metrics.ts";

/** Journal of what happened to a run; never cut back, and, unlike the metrics, with wall-clock in it. */
export const COURSE_FILE = "events.jsonl";

const at = z.iso.datetime().describe("when it was noted");
const steps = z.number().int().nonnegative();

export const courseEventSchema = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("started"),
    at,
    stepsDone: steps.describe("0 for a fresh run, more for one that goes on"),
    pid: z.number().int().positive(),
    host: z.string(),
  }),
  z.strictObject({
    kind: z.literal("ratio-check"),
    at,
    stats: ratioSchema.describe("engine over sampler at unchanged weights"),
  }),
  z.strictObject({ kind: z.literal("ratio-check-skipped"), at }),
  z.strictObject({ kind: z.literal("corrupt-checkpoint"), at, what: z.string() }),
  z.strictObject({ kind: z.literal("checkpoint"), at, stepsDone: steps, reason: z.string() }),
  z.strictObject({ kind: z.literal("finished"), at }),
  z.strictObject({ kind: z.literal("stopped"), at, what: z.string() }),
  z.strictObject({
    kind: z.literal("failed"),
    at,
    code: z.string(),
    what: z.string(),
    where: z.string().nullable(),
    side: z.string(),
    hint: z.string(),
  }),
]);
export type CourseEvent = z.infer<typeof courseEventSchema>;

type WithoutTime<T> = T extends unknown ? Omit<T, "at"> : never;

export interface Course {
  note(event: WithoutTime<CourseEvent>): Promise<void>;
  /** Notes that the work begins, and how it ends. @returns what it returns @throws what it throws */
  follow<T>(stepsDone: number, work: () => Promise<T>): Promise<T>;
}

/** Keeps a run's course in its folder. */
export function openCourse(folder: string, now: () => Date = () => new Date()): Course {
  const note: Course["note"] = (event) =>
    appendRecord(join(folder, COURSE_FILE), { ...event, at: now().toISOString() });
  return {
    note,
    async follow(stepsDone, work) {
      await note({ kind: "started", stepsDone, pid: process.pid, host: hostname() });
      try {
        const result = await work();
        await note({ kind: "finished" });
        return result;
      } catch (error) {
        // The run's own error is what counts, also where the disk that failed it cannot take the note.
        await note(endOf(error)).catch(() => {});
        throw error;
      }
    },
  };
}

/** What an error that ended a run is in its course. */
export function endOf(error: unknown): WithoutTime<Extract<CourseEvent, { readonly kind: "stopped" | "failed" }>> {
  if (isError(error, "INTERRUPTED")) return { kind: "stopped", what: error.what };
  const { code, what, where = null, side, hint } = asRootstepError(error);
  return { kind: "failed", code, what, where, side, hint };
}

export const trainingStateSchema = z.strictObject({
  state: z.enum(["running", "stopped", "finished", "failed"]),
  /** Why it stopped or failed, or what is not sure about it. */
  reason: z.string().nullable(),
  /** Of the error catalogue, where it failed with one. */
  code: z.string().nullable(),
});
export type TrainingState = z.infer<typeof trainingStateSchema>;

/** How a reader sees whether a process lives. */
export interface ProcessView {
  readonly host: string;
  readonly isAlive: (pid: number) => boolean;
}
export const thisMachine: ProcessView = { host: hostname(), isAlive };

/**
 * The state of a run by its course.
 * @param course events in the journal's order @param lock process that holds the folder's lock, for runs without a course
 */
export function stateOf(
  course: readonly CourseEvent[],
  run: { readonly stepsDone: number; readonly steps: number; readonly lock: number | undefined },
  view: ProcessView = thisMachine,
): TrainingState {
  for (const event of course.toReversed()) {
    switch (event.kind) {
      case "finished":
        return { state: "finished", reason: null, code: null };
      case "stopped":
        return { state: "stopped", reason: event.what, code: null };
      case "failed":
        return { state: "failed", reason: event.what, code: event.code };
      case "started":
        return stateOfProcess(event, view);
    }
  }
  if (run.lock !== undefined && view.isAlive(run.lock)) return { state: "running", reason: null, code: null };
  if (run.stepsDone >= run.steps) return { state: "finished", reason: null, code: null };
  return { state: "stopped", reason: "nothing in the folder says why", code: null };
}

function stateOfProcess(
  { pid, host }: Extract<CourseEvent, { readonly kind: "started" }>,
  view: ProcessView,
): TrainingState {
  if (host !== view.host) {
    return { state: "running", reason: `on ${host}: whether it still runs cannot be seen from here`, code: null };
  }
  if (view.isAlive(pid)) return { state: "running", reason: null, code: null };
  return { state: "failed", reason: `process ${pid} is gone without a word: it was killed or crashed`, code: null };
}

/** The process that holds a run folder. */
export function lockOf(folder: string): number | undefined {
  const lock = join(folder, "lock");
  if (!existsSync(lock)) return undefined;
  const pid = Number(readFileSync(lock, "utf8"));
  return Number.isInteger(pid) && pid > 0 ? pid : undefined;
}
