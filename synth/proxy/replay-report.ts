import type { TapeFolder } from "../tape/loader.ts";
import type { Redactor } from "../tape/redact.ts";
import { compareOutcome } from "./identity.ts";
import type { ProgramOutcome } from "./program-run.ts";
import type { ReplayHandler } from "./replay-handler.ts";
import type { ReplayReport } from "./replay-program.ts";
import type { TapeRecordings } from "./tape-recordings.ts";

const NO_TOOLS: ReplayReport["tools"] = { recorded: 0, levels: { L0: 0, L1: 0, L2: 0 }, live: 0, unplayed: 0 };

/** How a rerun went, whichever front its calls came through. */
export function replayReport(
  replay: ReplayHandler,
  recordings: TapeRecordings,
  tape: TapeFolder,
  outcome: ProgramOutcome,
  redact: Redactor,
  tools: ReplayReport["tools"] = NO_TOOLS,
): ReplayReport {
  const { actions, liveCalls, unplayed, stopped } = replay;
  const { exitCode, signal, timedOut, answer } = outcome;
  return {
    recorded: recordings.calls.length,
    levels: { ...replay.levels },
    actions,
    liveCalls,
    unplayed,
    tools,
    stopped: stopped === undefined ? undefined : { code: stopped.code, what: stopped.what, where: stopped.where },
    exitCode,
    signal,
    timedOut,
    answer,
    outcome: compareOutcome(tape, outcome, redact),
  };
}
