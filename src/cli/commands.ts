import type { AnyCommand } from "./command.ts";
import { synthRun } from "./synth.ts";

/** Every verb, in the order of --help. */
export const commands: readonly AnyCommand[] = [synthRun];
