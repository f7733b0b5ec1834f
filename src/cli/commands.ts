import type { AnyCommand } from "./command.ts";
import { dataAudit, dataValidate } from "./data.ts";
import { dataStatsCommand } from "./data-stats.ts";
import { dataSteps } from "./data-steps.ts";
import { demo } from "./demo.ts";
import { evalRun, evalScore } from "./eval.ts";
import { evalCompare } from "./eval-compare.ts";
import { install } from "./install.ts";
import { list } from "./list.ts";
import { mcpTape } from "./mcp-tape.ts";
import { record } from "./record.ts";
import { replay } from "./replay.ts";
import { simulate } from "./simulate.ts";
import { synthRun } from "./synth.ts";
import { synthExport } from "./synth-export.ts";
import { synthPlan } from "./synth-plan.ts";
import { synthStatus } from "./synth-status.ts";
import { trainRunCommand } from "./train.ts";
import { trainExportVerl } from "./train-export-verl.ts";
import { trainLaunch } from "./train-launch.ts";
import { trainSftCommand } from "./train-sft.ts";
import { trainStatus } from "./train-status.ts";
import { worker } from "./worker.ts";

/** Every verb, in the order of --help. */
export const commands: readonly AnyCommand[] = [
  synthRun,
  synthPlan,
  synthStatus,
  synthExport,
  worker,
  simulate,
  install,
  record,
  replay,
  mcpTape,
  trainRunCommand,
  trainSftCommand,
  trainStatus,
  trainExportVerl,
  trainLaunch,
  evalRun,
  evalScore,
  evalCompare,
  dataAudit,
  dataValidate,
  dataStatsCommand,
  dataSteps,
  list,
  demo,
];
