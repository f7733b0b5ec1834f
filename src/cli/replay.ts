import { readFileSync } from "node:fs";
import { type Action, parseAction } from "../../synth/proxy/action.ts";
import type { ProxyCut } from "../../synth/proxy/cut.ts";
import { identityFaults } from "../../synth/proxy/identity.ts";
import { type ReplayReport, replayProgram } from "../../synth/proxy/replay-program.ts";
import { recordingsOf } from "../../synth/proxy/tape-recordings.ts";
import { cutAtStep } from "../../synth/steps/cut-at-step.ts";
import { packageDifferences } from "../../synth/systems/packages.ts";
import { loadTape, type TapeFolder } from "../../synth/tape/loader.ts";
import { type ShownCall, showTape } from "../../synth/tape/show.ts";
import { EXIT, type ExitCode, RootstepError } from "../errors.ts";
import { parseServerUrl } from "../models/server-url.ts";
import { textTable } from "../report/table.ts";
import {
  type Arguments,
  type CommandContext,
  optionalNumber,
  optionalString,
  plainCommand,
  stringArgument,
} from "./command.ts";
import { endOf, PROGRAM_FLAGS, programOf, programSettings, solved } from "./record.ts";
import { outcomeOf, programToReplay } from "./system-program.ts";
import { renderSteps, STEP_POLICY, tapeTrajectory, writeTrajectory } from "./tape-steps.ts";
import { ALLOW_EXTERNAL, TOOL_FLAGS, toolSettings } from "./tool-flags.ts";
import { printTapeValidation } from "./validate-tape.ts";

/** `replay TAPE [-- CMD]`: the identity gate and counterfactual reruns; `replay show TAPE`; `replay validate TAPE`. */
export const replay = plainCommand({
  name: "replay",
  describe: "run a program against its tape: --check it, or change call N; also: replay show|validate TAPE",
  arguments: [
    {
      name: "tape",
      describe: "tape folder, or show | validate and then the folder",
      type: "string",
      positional: true,
      required: true,
    },
    { name: "check", describe: "identity gate: exit code 1 unless the rerun is the recorded run", type: "boolean" },
    { name: "cut", describe: "calls before N from the tape, N and what follows live (see --action)", type: "number" },
    { name: "cut-step", describe: "as --cut, at the calls of that step (see --step-policy)", type: "number" },
    STEP_POLICY,
    { name: "steps", describe: "show: the steps of the run instead of its calls", type: "boolean" },
    { name: "action", describe: "file with what call N answers instead of its recording", type: "string" },
    { name: "upstream", describe: "base URL asked after the cut; default: the recorded one", type: "string" },
    { name: "max-live-calls", describe: "requests to the upstream at most", type: "number" },
    {
      name: "similarity",
      describe: "also match by position from this likeness (0–1) on; default: never",
      type: "number",
    },
    { name: "out", describe: "record the rerun as a tape of its own", type: "string" },
    ...TOOL_FLAGS,
    ALLOW_EXTERNAL,
    ...PROGRAM_FLAGS,
  ],
  examples: [
    "replay show tapes/one",
    "replay tapes/one --check -- python3 agents.py",
    "replay tapes/one --cut 3 --action corrected.txt -- python3 agents.py",
    "replay tapes/of-a-system --check",
  ],
  async run(_, args, context) {
    const first = stringArgument(args, "tape");
    if (first === "show" && args.steps === true) return showSteps(loadTape(onlyTape(args)), args, context);
    if (first === "show") return show(loadTape(onlyTape(args)), context);
    if (first === "validate") return printTapeValidation(onlyTape(args), context);
    const tape = loadTape(first);
    for (const torn of tape.torn) context.progress.note(`left out: ${torn}`);
    try {
      return await rerun(tape, args, context);
    } finally {
      tape.bodies.close();
    }
  },
});

async function rerun(tape: TapeFolder, args: Arguments, context: CommandContext): Promise<ExitCode> {
  const isCheck = args.check === true;
  const file = optionalString(args, "action");
  const cut = await cutOf(tape, args, file === undefined ? undefined : parseAction(readAction(file)));
  if (isCheck && cut !== undefined) {
    throw new RootstepError("USAGE", { what: "--check replays the whole tape: it goes with no --cut" });
  }
  if (file !== undefined && cut === undefined) throw new RootstepError("USAGE", { what: "--action needs --cut N" });
  const upstream =
    cut === undefined
      ? undefined
      : parseServerUrl(optionalString(args, "upstream") ?? tape.header.upstream, "--upstream");
  const program = await programToReplay(tape.header, programOf(args), context);
  const changes = packageDifferences(
    tape.header.program?.packages ?? program.program.packages,
    program.program.packages,
  );
  if (changes.length > 0) context.progress.note(`packages are not those of the recording: ${someOf(changes)}`);
  const out = optionalString(args, "out");
  const report = await replayProgram({
    ...programSettings(args, context, upstream, program),
    ...toolSettings(args),
    masks: program.masks,
    idPatterns: program.idPatterns,
    tape,
    cut,
    upstream,
    maxLiveCalls: optionalNumber(args, "max-live-calls"),
    similarityFloor: optionalNumber(args, "similarity"),
    out,
    version: context.version,
    now: context.now,
  });
  if (out !== undefined) {
    const rerun = loadTape(out);
    await writeTrajectory(rerun, args, context).finally(() => rerun.bodies.close());
  }
  const faults = isCheck ? identityFaults(report) : report.stopped === undefined ? [] : [report.stopped.what];
  const solution = await outcomeOf(program.program, report.answer);
  const text = [renderReplay(report, isCheck, faults), ...solved(solution)].join("\n");
  context.print({ ...report, faults, packageChanges: changes, solution }, text);
  if (report.stopped?.code === "BUDGET_REACHED") return EXIT.budget;
  return faults.length === 0 ? EXIT.ok : EXIT.failed;
}

/** Where to cut: at a call, or at the calls of a step. */
async function cutOf(tape: TapeFolder, args: Arguments, action: Action | undefined): Promise<ProxyCut | undefined> {
  const [at, step] = [optionalNumber(args, "cut"), optionalNumber(args, "cut-step")];
  if (step === undefined) return at === undefined ? undefined : { at, action };
  if (at !== undefined) throw new RootstepError("USAGE", { what: "--cut and --cut-step both say where to cut" });
  return { ...cutAtStep(await tapeTrajectory(tape, args), step, recordingsOf(tape).calls), action };
}

function renderReplay(report: ReplayReport, isCheck: boolean, faults: readonly string[]): string {
  const { levels, outcome } = report;
  const isSame = faults.length === 0;
  return [
    `tape: ${report.recorded} calls; matched ${levels.L0} by content (L0), ${levels.L1} with ids and clocks masked (L1), ${levels.L2} by position (L2)`,
    `replaced by the action: ${report.actions}; live: ${report.liveCalls}; not asked for: ${report.unplayed}`,
    ...toolLines(report.tools),
    endOf(report),
    `compared with the recording: exit ${outcome.exit}, answer ${outcome.answer}, standard output ${outcome.stdout}`,
    ...(isCheck ? [isSame ? "identity gate: passed" : "identity gate: FAILED, the run is not replayable"] : []),
    ...faults.map((fault) => `  - ${fault}`),
  ].join("\n");
}

function toolLines({ recorded, levels, live, unplayed }: ReplayReport["tools"]): string[] {
  if (recorded + live === 0) return [];
  const matched = `${levels.L0} by content, ${levels.L1} with ids and clocks masked, ${levels.L2} by position`;
  return [`tools: ${recorded} exchanges; matched ${matched}; live: ${live}; not asked for: ${unplayed}`];
}

/** A list to read: five and how many more. */
function someOf(items: readonly string[]): string {
  const more = items.length > 5 ? `, and ${items.length - 5} more` : "";
  return `${items.slice(0, 5).join(", ")}${more}`;
}

async function showSteps(tape: TapeFolder, args: Arguments, context: CommandContext): Promise<ExitCode> {
  try {
    const trajectory = await tapeTrajectory(tape, args);
    context.print(trajectory, renderSteps(trajectory));
    return EXIT.ok;
  } finally {
    tape.bodies.close();
  }
}

function show(tape: TapeFolder, context: CommandContext): ExitCode {
  const rows = showTape(tape);
  const { header, end, torn } = tape;
  const ended = end === undefined ? "the recording was interrupted" : endOf({ ...end, answer: end.answer });
  const title = `${header.run}: ${header.command.join(" ")} at ${header.upstream}, ${header.startedAt}; ${ended}`;
  const table = textTable(
    title,
    ["call", "lane", "endpoint", "model", "status", "tokens in", "out", "first words"],
    rows.map((row) => [
      row.call === undefined ? "–" : String(row.call),
      row.lane,
      row.endpoint,
      row.model ?? "",
      statusCell(row),
      String(row.promptTokens ?? ""),
      String(row.completionTokens ?? ""),
      row.words,
    ]),
  );
  context.print({ header, end, torn, calls: rows }, [table, ...torn.map((line) => `left out: ${line}`)].join("\n"));
  tape.bodies.close();
  return EXIT.ok;
}

function statusCell({ status, outcome, from, kept, streamed }: ShownCall): string {
  const marks = [
    outcome === "complete" ? undefined : outcome,
    kept === "yes" || kept === "tool" ? undefined : kept,
    from === "live" ? undefined : from,
    streamed ? "streamed" : undefined,
  ].filter((mark) => mark !== undefined);
  return [status === 0 ? "–" : String(status), ...marks].join(" ");
}

function onlyTape(args: Arguments): string {
  const rest = Array.isArray(args.command) ? args.command.map(String) : [];
  const [path] = rest;
  if (path !== undefined && rest.length === 1) return path;
  throw new RootstepError("USAGE", { what: "name one tape folder", hint: "rootstep replay show TAPE" });
}

function readAction(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new RootstepError("FILE_MISSING", { what: "the action cannot be read", where: file, cause });
  }
}
