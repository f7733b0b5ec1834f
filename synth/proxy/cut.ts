import { RootstepError } from "../../src/errors.ts";
import type { Action } from "./action.ts";

/** Where a rerun stops following its tape, and what call `at` answers there; without an action that call is live. */
export interface ProxyCut {
  readonly at: number;
  readonly action?: Action | undefined;
  /** The calls from the tape, where they are not just those before `at`; see `ReplayCut`. */
  readonly prefix?: ReadonlySet<number> | undefined;
}

/** Whether a call of the tape comes from it. */
export function isBefore({ at, prefix }: ProxyCut): (call: number) => boolean {
  return (call) => prefix?.has(call) ?? call < at;
}

/** @throws RootstepError USAGE where the tape has no such call */
export function refuseCut(cut: ProxyCut | undefined, calls: number): void {
  if (cut === undefined) return;
  // Cutting after the last call without an action is the control: everything from tape, whatever follows live.
  const last = cut.action === undefined ? calls : calls - 1;
  if (Number.isInteger(cut.at) && cut.at >= 0 && cut.at <= last) return;
  throw new RootstepError("USAGE", {
    what: `there is no call ${cut.at} to cut at: the tape holds calls 0 to ${calls - 1}`,
    where: "--cut",
    hint: "`rootstep replay show TAPE` lists them.",
  });
}
