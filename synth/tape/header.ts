import { arch, platform } from "node:os";
import { type SideEffects, TAPE_FOLDER_VERSION, type TapedProgram, type TapeHeader } from "./folder-schema.ts";

/** The first line of a tape recorded on this machine. */
export function tapeHeader(about: {
  readonly run: string;
  /** Base URL without anything secret. */
  readonly upstream: string;
  readonly command: readonly string[];
  readonly program?: TapedProgram | undefined;
  readonly sideEffects?: SideEffects | undefined;
  readonly tools?: TapeHeader["tools"] | undefined;
  /** Of rootstep. */
  readonly version: string;
  readonly now: () => Date;
}): TapeHeader {
  return {
    type: "tape",
    version: TAPE_FOLDER_VERSION,
    rootstep: about.version,
    run: about.run,
    startedAt: about.now().toISOString(),
    upstream: about.upstream,
    command: [...about.command],
    platform: { node: process.version, os: platform(), arch: arch() },
    ...(about.program === undefined ? {} : { program: about.program }),
    ...(about.sideEffects === undefined ? {} : { sideEffects: about.sideEffects }),
    ...(about.tools === undefined || Object.keys(about.tools).length === 0 ? {} : { tools: about.tools }),
  };
}
