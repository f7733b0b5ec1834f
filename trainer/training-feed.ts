import { join } from "node:path";
import { z } from "zod";
import { RootstepError } from "../src/errors.ts";
import { type Clock, systemClock } from "../src/models/clock.ts";
import { type LineTail, openLineTail } from "./line-tail.ts";
import { evaluationSchema, metricSchema, sftMetricSchema, timingSchema } from "./metrics.ts";
import {
  COURSE_FILE,
  type CourseEvent,
  courseEventSchema,
  lockOf,
  type ProcessView,
  stateOf,
  thisMachine,
} from "./training-course.ts";
import type { FeedMessage, Rewindable, TrainingFeedEvent } from "./training-feed-contract.ts";
import { readTrainingManifest } from "./training-status.ts";

export interface FollowOptions {
  /** Position of the last message that was taken in; all there is from the start without it. */
  readonly from?: string | undefined;
  /** Ends the feed. */
  readonly signal?: AbortSignal | undefined;
  /** `end`: the feed ends with the run. `abort`: it goes on, for a run that may be resumed. */
  readonly until?: "end" | "abort";
  readonly pollMs?: number;
  readonly clock?: Clock;
  readonly view?: ProcessView;
}

const POLL_MS = 500;

const tailPosition = z.strictObject({ bytes: z.number().int().nonnegative(), chain: z.string() });
const positionSchema = z.strictObject({
  metric: tailPosition,
  evaluation: tailPosition,
  timing: tailPosition,
  course: tailPosition,
});
type Position = z.infer<typeof positionSchema>;

/**
 * Follows a training folder while it is written, or after: its records as typed events, and its state whenever that changes. Reads
 * only. Bears torn last lines, and records that a resumed run cuts off and makes again.
 *
 * @throws RootstepError FILE_MISSING, RUN_MISMATCH (no training run), RUN_CORRUPT (a record cannot be read), USAGE (a position that is none)
 */
export async function* followTraining(folder: string, options: FollowOptions = {}): AsyncGenerator<FeedMessage> {
  const { signal, clock = systemClock, until = "end", pollMs = POLL_MS, view = thisMachine } = options;
  const { kind, steps, startedAt } = readTrainingManifest(folder);
  const from = options.from === undefined ? undefined : parsePosition(options.from);
  const tails = {
    metric: openLineTail(join(folder, "metrics.jsonl"), from?.metric),
    evaluation: openLineTail(join(folder, "evaluations.jsonl"), from?.evaluation),
    timing: openLineTail(join(folder, "timings.jsonl"), from?.timing),
  };
  // Read from its start, whatever the position: the state comes of all of it.
  const courseTail = openLineTail(join(folder, COURSE_FILE));
  let courseSeen = from?.course.bytes ?? 0;
  const course: CourseEvent[] = [];
  let state = "";

  const message = (event: TrainingFeedEvent): FeedMessage => {
    const { metric, evaluation, timing } = tails;
    const seen: Position = {
      metric: metric.position,
      evaluation: evaluation.position,
      timing: timing.position,
      course: { bytes: courseSeen, chain: "" },
    };
    return { position: Buffer.from(JSON.stringify(seen)).toString("base64url"), event };
  };

  if (from === undefined) yield message({ kind: "run", run: { kind, steps, startedAt } });
  while (!isAborted(signal)) {
    // Before the records: those that were written ahead of a run's end are then sure to be seen ahead of it.
    const news: { readonly event: CourseEvent; readonly bytes: number }[] = [];
    for await (const item of courseTail.read()) {
      if (item.kind === "rewound") course.length = item.kept;
      else {
        const event = parseRecord(item.line, courseEventSchema, join(folder, COURSE_FILE), item.number);
        course.push(event);
        news.push({ event, bytes: courseTail.position.bytes });
      }
    }
    for (const of of ["metric", "evaluation", "timing"] as const) {
      for await (const event of records(tails[of], of, kind, folder)) {
        yield message(event);
      }
    }
    for (const { event, bytes } of news) {
      if (bytes <= courseSeen) continue;
      courseSeen = bytes;
      yield message({ kind: "course", course: event });
    }
    const now = stateOf(course, { stepsDone: tails.metric.count, steps, lock: lockOf(folder) }, view);
    if (JSON.stringify(now) !== state) yield message({ kind: "state", ...now });
    state = JSON.stringify(now);
    if (until === "end" && now.state !== "running") return;
    // An abort ends the feed in peace.
    await clock.sleep(pollMs, signal).catch((error: unknown) => {
      if (!isAborted(signal)) throw error;
    });
  }
}

const isAborted = (signal: AbortSignal | undefined): boolean => signal?.aborted === true;

async function* records(
  tail: LineTail,
  of: Rewindable,
  kind: "grpo" | "sft",
  folder: string,
): AsyncGenerator<TrainingFeedEvent> {
  const file = join(folder, `${of}s.jsonl`);
  for await (const item of tail.read()) {
    if (item.kind === "rewound") yield { kind: "rewound", of, kept: item.kept };
    else yield recordEvent(of, kind, item, file);
  }
}

function recordEvent(
  of: Rewindable,
  kind: "grpo" | "sft",
  { line, number }: { readonly line: string; readonly number: number },
  file: string,
): TrainingFeedEvent {
  switch (of) {
    case "metric": {
      const metric =
        kind === "grpo"
          ? parseRecord(line, metricSchema, file, number)
          : parseRecord(line, sftMetricSchema, file, number);
      return { kind: of, metric };
    }
    case "evaluation":
      return { kind: of, evaluation: parseRecord(line, evaluationSchema, file, number) };
    case "timing":
      return { kind: of, timing: parseRecord(line, timingSchema, file, number) };
  }
}

/** @throws RootstepError RUN_CORRUPT */
function parseRecord<T>(line: string, schema: z.ZodType<T>, file: string, number: number): T {
  try {
    return schema.parse(JSON.parse(line));
  } catch (cause) {
    throw new RootstepError("RUN_CORRUPT", { what: "the record cannot be read", where: `${file}:${number}`, cause });
  }
}

/** @throws RootstepError USAGE */
function parsePosition(text: string): Position {
  try {
    return positionSchema.parse(JSON.parse(Buffer.from(text, "base64url").toString("utf8")));
  } catch (cause) {
    const hint = "Give the position of a message of this feed as it was, or none to begin at the start.";
    throw new RootstepError("USAGE", { what: "that is no position in a training feed", where: text, hint, cause });
  }
}
