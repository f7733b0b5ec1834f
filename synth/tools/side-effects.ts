import { RootstepError } from "../../src/errors.ts";
import type { SideEffects } from "../tape/folder-schema.ts";

export interface Rerun {
  /** As declared by the user or the system's manifest; undefined: not declared, taken as `workdir`. */
  readonly sideEffects: SideEffects | undefined;
  /** Some calls are live: a cut. Without one everything behind the proxy comes from the tape. */
  readonly isLive: boolean;
  /** Tools of the run are behind the proxy. */
  readonly hasTapedTools: boolean;
  /** The user insists. */
  readonly allowExternal: boolean;
}

/**
 * Refuses to run a program again that reaches outside. A rerun runs the program itself: what it does without the proxy it
 * does again.
 *
 * With a cut, tools are asked live after it, so `external` is refused whatever is taped. Without one (the identity gate)
 * nothing behind the proxy is asked live: `external` is refused only where none of the run's tools is behind it, as then
 * the program's reach can only be its own.
 *
 * @throws RootstepError SIDE_EFFECTS
 */
export function refuseExternal({ sideEffects, isLive, hasTapedTools, allowExternal }: Rerun): void {
  if (sideEffects !== "external" || allowExternal || (!isLive && hasTapedTools)) return;
  const what = isLive
    ? "the run is declared to have external side effects, and a rerun would have them again"
    : "the run is declared to have external side effects, and none of its tools is on tape: even a check would repeat them";
  throw new RootstepError("SIDE_EFFECTS", { what, where: "--side-effects external" });
}
