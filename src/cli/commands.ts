import type { AnyCommand } from "./command.ts";
import { dataAudit, dataValidate } from "./data.ts";
import { demo } from "./demo.ts";
import { evalRun, evalScore } from "./eval.ts";
import { evalCompare } from "./eval-compare.ts";
import { list } from "./list.ts";
import { record } from "./record.ts";
import { replay } from "./replay.ts";
import { simulate } from "./simulate.ts";
import { synthRun } from "./synth.ts";
import { trainRunCommand } from "./train.ts";

/** Every verb, in the order of --help. */
export const commands: readonly AnyCommand[] = [
  synthRun,
  simulate,
  record,
  replay,
  trainRunCommand,
  evalRun,
  evalScore,
  evalCompare,
  dataAudit,
  dataValidate,
  list,
  demo,
];
