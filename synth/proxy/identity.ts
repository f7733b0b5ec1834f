import { sideBySide } from "../tape/difference.ts";
import type { TapeFolder } from "../tape/loader.ts";
import { maskText } from "../tape/masks.ts";
import type { Redactor } from "../tape/redact.ts";
import type { ProgramOutcome } from "./program-run.ts";
import type { ReplayReport } from "./replay-program.ts";

/** How the rerun's outcome compares with the recorded one. */
export interface OutcomeComparison {
  readonly exit: "same" | "differs";
  /** none: the recording has no answer; then standard output decides. */
  readonly answer: "same" | "differs" | "none";
  /** masked: the same but for ids and clocks. */
  readonly stdout: "same" | "masked" | "differs";
  /** The first difference, to read. */
  readonly difference: string | undefined;
}

/** Compares with the tape's last line. A tape without one (its recording was killed) has no outcome: all differs. */
export function compareOutcome({ end, bodies }: TapeFolder, now: ProgramOutcome, redact: Redactor): OutcomeComparison {
  if (end === undefined) {
    const difference = "the recording was interrupted: it has no outcome to compare with";
    return { exit: "differs", answer: "none", stdout: "differs", difference };
  }
  const [recorded, printed] = [bodies.get(end.stdout).toString("utf8"), redact(now.stdout.toString("utf8"))];
  const answer = now.answer === undefined ? undefined : redact(now.answer);
  const exit = end.exitCode === now.exitCode && end.signal === now.signal ? "same" : "differs";
  const isMasked = (): boolean => maskText(recorded).text === maskText(printed).text;
  const stdout = recorded === printed ? "same" : isMasked() ? "masked" : "differs";
  const answers =
    end.answer === undefined && answer === undefined ? "none" : end.answer === answer ? "same" : "differs";
  const difference =
    exit === "differs"
      ? `exit: recorded ${end.exitCode ?? end.signal}, now ${now.exitCode ?? now.signal}`
      : answers === "differs"
        ? sideBySide("answer", end.answer ?? "(none)", answer ?? "(none)")
        : stdout === "differs"
          ? sideBySide("standard output", recorded, printed)
          : undefined;
  return { exit, answer: answers, stdout, difference };
}

/**
 * The identity gate: the whole tape was asked for, nothing else was, nothing was live, and the outcome is the same.
 * @returns what does not hold; empty where the run is replayable
 */
export function identityFaults(report: ReplayReport): string[] {
  const faults: string[] = [];
  if (report.stopped !== undefined) faults.push(`${report.stopped.code}: ${report.stopped.what}`);
  if (report.unplayed > 0) faults.push(`the program made ${report.unplayed} calls fewer than the tape holds`);
  if (report.liveCalls > 0) faults.push(`${report.liveCalls} calls were live`);
  const { unplayed, live } = report.tools;
  if (unplayed > 0) faults.push(`the program made ${unplayed} requests to tools fewer than the tape holds`);
  if (live > 0) faults.push(`${live} requests to tools were live`);
  if (report.timedOut) faults.push("the program did not end within its time limit");
  const { exit, answer, stdout, difference } = report.outcome;
  const isSame = exit === "same" && (answer === "none" ? stdout !== "differs" : answer === "same");
  if (!isSame) faults.push(`the outcome differs: ${difference ?? "unknown"}`);
  return faults;
}
