import { readFileSync } from "node:fs";
import { parseAction } from "../../synth/proxy/action.ts";
import { identityFaults } from "../../synth/proxy/identity.ts";
import { type ReplayReport, replayProgram } from "../../synth/proxy/replay-program.ts";
import { loadTape, type TapeFolder } from "../../synth/tape/loader.ts";
import { type ShownCall, showTape } from "../../synth/tape/show.ts";
import { validateTape } from "../../synth/tape/validate.ts";
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
import { endOf, PROGRAM_FLAGS, programSettings } from "./record.ts";

/** `replay TAPE -- CMD`: the identity gate and counterfactual reruns; `replay show TAPE`; `replay validate TAPE`. */
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
    { name: "action", describe: "file with what call N answers instead of its recording", type: "string" },
    { name: "upstream", describe: "base URL asked after the cut; default: the recorded one", type: "string" },
    { name: "max-live-calls", describe: "requests to the upstream at most", type: "number" },
    {
      name: "similarity",
      describe: "also match by position from this likeness (0–1) on; default: never",
      type: "number",
    },
    { name: "out", describe: "record the rerun as a tape of its own", type: "string" },
    ...PROGRAM_FLAGS,
  ],
  examples: [
    "replay show tapes/one",
    "replay tapes/one --check -- python3 agents.py",
    "replay tapes/one --cut 3 --action corrected.txt -- python3 agents.py",
  ],
  async run(_, args, context) {
    const first = stringArgument(args, "tape");
    if (first === "show") return show(loadTape(onlyTape(args)), context);
    if (first === "validate") return validate(onlyTape(args), context);
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
  const at = optionalNumber(args, "cut");
  const isCheck = args.check === true;
  if (isCheck && at !== undefined) {
    throw new RootstepError("USAGE", { what: "--check replays the whole tape: it goes with no --cut" });
  }
  const file = optionalString(args, "action");
  if (file !== undefined && at === undefined) throw new RootstepError("USAGE", { what: "--action needs --cut N" });
  const action = file === undefined ? undefined : parseAction(readAction(file));
  const upstream =
    at === undefined
      ? undefined
      : parseServerUrl(optionalString(args, "upstream") ?? tape.header.upstream, "--upstream");
  const report = await replayProgram({
    ...programSettings(args, context, upstream),
    tape,
    cut: at === undefined ? undefined : { at, action },
    upstream,
    maxLiveCalls: optionalNumber(args, "max-live-calls"),
    similarityFloor: optionalNumber(args, "similarity"),
    out: optionalString(args, "out"),
    version: context.version,
    now: context.now,
  });
  const faults = isCheck ? identityFaults(report) : report.stopped === undefined ? [] : [report.stopped.what];
  context.print({ ...report, faults }, renderReplay(report, isCheck, faults));
  if (report.stopped?.code === "BUDGET_REACHED") return EXIT.budget;
  return faults.length === 0 ? EXIT.ok : EXIT.failed;
}

function renderReplay(report: ReplayReport, isCheck: boolean, faults: readonly string[]): string {
  const { levels, outcome } = report;
  const isSame = faults.length === 0;
  return [
    `tape: ${report.recorded} calls; matched ${levels.L0} by content (L0), ${levels.L1} with ids and clocks masked (L1), ${levels.L2} by position (L2)`,
    `replaced by the action: ${report.actions}; live: ${report.liveCalls}; not asked for: ${report.unplayed}`,
    endOf(report),
    `compared with the recording: exit ${outcome.exit}, answer ${outcome.answer}, standard output ${outcome.stdout}`,
    ...(isCheck ? [isSame ? "identity gate: passed" : "identity gate: FAILED, the run is not replayable"] : []),
    ...faults.map((fault) => `  - ${fault}`),
  ].join("\n");
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
    kept === "yes" ? undefined : kept,
    from === "live" ? undefined : from,
    streamed ? "streamed" : undefined,
  ].filter((mark) => mark !== undefined);
  return [status === 0 ? "–" : String(status), ...marks].join(" ");
}

function validate(path: string, context: CommandContext): ExitCode {
  const { calls, bodies, ended, faults, torn } = validateTape(path);
  const lines = [
    `${calls} calls, ${bodies} bodies, ${ended ? "ended" : "interrupted"}; ${faults.length} faults`,
    ...faults.map(({ where, what, code }) => `  ${where}: ${what} [${code}]`),
    ...torn.map((line) => `  left out: ${line}`),
  ];
  context.print({ calls, bodies, ended, faults, torn }, lines.join("\n"));
  return faults.length === 0 ? EXIT.ok : EXIT.failed;
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
