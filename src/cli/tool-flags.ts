import { programSystemById } from "../../synth/systems/registry.ts";
import { SIDE_EFFECTS, type SideEffects } from "../../synth/tape/folder-schema.ts";
import { type MappedTool, parseTools } from "../../synth/tools/mapping.ts";
import { type Argument, type Arguments, optionalString } from "./command.ts";

/** Flags of `record` and `replay`: what the program reaches besides its models. */
export const TOOL_FLAGS: readonly Argument[] = [
  {
    name: "tool",
    describe:
      "NAME=URL: tape that tool's traffic too; the program finds it in ROOTSTEP_TOOL_NAME (or NAME:VARIABLE=URL); repeatable",
    type: "array",
  },
  {
    name: "side-effects",
    describe: "what a run touches: nothing, its own folders, taped tools only, or more (external is not run again)",
    type: "string",
    choices: SIDE_EFFECTS,
  },
];

export const ALLOW_EXTERNAL: Argument = {
  name: "allow-external",
  describe: "run the program again though its side effects are external",
  type: "boolean",
};

export interface ToolSettings {
  readonly tools: readonly MappedTool[];
  readonly sideEffects: SideEffects | undefined;
  readonly allowExternal: boolean;
}

/** @throws RootstepError USAGE */
export function toolSettings(args: Arguments): ToolSettings {
  const given = optionalString(args, "side-effects");
  const system = optionalString(args, "system");
  const bySystem = system === undefined ? undefined : programSystemById(system).sideEffects;
  return {
    tools: parseTools(Array.isArray(args.tool) ? args.tool.map(String) : []),
    sideEffects: SIDE_EFFECTS.find((kind) => kind === given) ?? bySystem,
    allowExternal: args["allow-external"] === true,
  };
}
