import type { AnyCommand } from "./command.ts";
import { dataAudit, dataValidate } from "./data.ts";
import { demo } from "./demo.ts";
import { evalRun, evalScore } from "./eval.ts";
import { list } from "./list.ts";
import { simulate } from "./simulate.ts";
import { synthRun } from "./synth.ts";
import { trainRunCommand } from "./train.ts";

/** Every verb, in the order of --help. */
export const commands: readonly AnyCommand[] = [
  synthRun,
  simulate,
  trainRunCommand,
  evalRun,
  evalScore,
  dataAudit,
  dataValidate,
  list,
  demo,
];
