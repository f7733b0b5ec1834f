import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { type RecordReport, recordProgram } from "../../synth/proxy/record-program.ts";
import { loadTape } from "../../synth/tape/loader.ts";
import { EXIT, RootstepError } from "../errors.ts";
import { keyFromEnvironment, type Secret } from "../models/key.ts";
import { isLoopback, parseServerUrl } from "../models/server-url.ts";
import type { Outcome } from "../trajectory/schema.ts";
import {
  type Argument,
  type Arguments,
  type CommandContext,
  optionalNumber,
  optionalString,
  plainCommand,
  stringArgument,
} from "./command.ts";
import { outcomeOf, type ProgramToRun, programToRecord, SYSTEM_FLAGS } from "./system-program.ts";
import { STEP_POLICY, writeTrajectory } from "./tape-steps.ts";
import { TOOL_FLAGS, toolSettings } from "./tool-flags.ts";

/** Flags that `record` and `replay` share: how the program runs. */
export const PROGRAM_FLAGS: readonly Argument[] = [
  {
    name: "key-env",
    describe: "variable with the upstream's key; none: send no key (default OPENAI_API_KEY, none for loopback)",
    type: "string",
  },
  {
    name: "time-limit",
    describe: "seconds until the program's process group is ended (default 1800, or the system's own)",
    type: "number",
  },
  { name: "files", describe: "folder copied into the program's working directory first", type: "string" },
  { name: "keep-home", describe: "leave HOME as it is (default: a fresh one per run)", type: "boolean" },
  { name: "port", describe: "loopback port of the proxy; 0 picks a free one", type: "number" },
  { name: "command", describe: "the program and its arguments, after --", type: "array", positional: true },
];

/** `record`: one run of any program against a model server, kept as a tape. */
export const record = plainCommand({
  name: "record",
  describe: "run a program behind the recording proxy and keep what it asked its models",
  arguments: [
    { name: "out", describe: "folder of the new tape", type: "string", required: true },
    { name: "upstream", describe: "base URL of the model server, often ending in /v1", type: "string", required: true },
    { name: "run", describe: "name of the run (a–z, 0–9, -); default: a random one", type: "string" },
    ...SYSTEM_FLAGS,
    ...TOOL_FLAGS,
    STEP_POLICY,
    ...PROGRAM_FLAGS,
  ],
  examples: [
    "record --out tapes/one --upstream http://127.0.0.1:8000/v1 -- python3 agents.py",
    "record --out tapes/two --upstream http://127.0.0.1:8000/v1 --system langgraph --task gsm8k:test-0001 --model Qwen3-8B",
  ],
  async run(_, args, context) {
    const upstream = parseServerUrl(stringArgument(args, "upstream"), "--upstream");
    const run = { name: runName(optionalString(args, "run")), startedAt: context.now() };
    const program = await programToRecord(args, programOf(args), context, run);
    const report = await recordProgram({
      ...programSettings(args, context, upstream, program),
      program: program.program,
      ...toolSettings(args),
      out: stringArgument(args, "out"),
      run: run.name,
      upstream,
      version: context.version,
      now: () => run.startedAt,
    });
    const outcome = await outcomeOf(program.program, report.answer);
    const tape = loadTape(report.tape);
    const trajectory = await writeTrajectory(tape, args, context).finally(() => tape.bodies.close());
    context.print({ ...report, outcome, trajectory }, renderRecording(report, outcome));
    return report.exitCode === 0 ? EXIT.ok : EXIT.failed;
  },
});

/** The program, its surroundings and the secrets of this run. */
export function programSettings(
  args: Arguments,
  context: CommandContext,
  upstream: URL | undefined,
  { command, env, timeLimit }: ProgramToRun,
) {
  const keyEnv = optionalString(args, "key-env");
  return {
    command,
    env,
    cwd: process.cwd(),
    timeLimitMs: 1000 * (optionalNumber(args, "time-limit") ?? timeLimit ?? 1800),
    keepHome: args["keep-home"] === true,
    files: optionalString(args, "files"),
    port: optionalNumber(args, "port"),
    token: randomBytes(24).toString("hex"),
    upstreamKey: upstreamKey(keyEnv, upstream, context),
    hidden: keyEnv === undefined ? [] : [keyEnv],
    signal: context.signal,
    // Standard output is for results: what the program prints goes to standard error.
    onOutput: context.json ? undefined : (bytes: Buffer) => void process.stderr.write(bytes),
  };
}

/** What stands after `--`. */
export function programOf(args: Arguments): string[] {
  const rest = Array.isArray(args._) ? args._.slice(1).map(String) : [];
  const given = Array.isArray(args.command) ? args.command.map(String) : [];
  return [...given, ...rest];
}

/** A server on this machine gets no key unless one is named: the user's own is none of its business. */
function upstreamKey(
  keyEnv: string | undefined,
  upstream: URL | undefined,
  context: CommandContext,
): Secret | undefined {
  if (upstream === undefined || keyEnv === "none") return undefined;
  if (keyEnv === undefined && isLoopback(upstream)) return undefined;
  return keyFromEnvironment([keyEnv ?? "OPENAI_API_KEY"], context.env);
}

function runName(given: string | undefined): string {
  if (given === undefined) return `run-${randomBytes(4).toString("hex")}`;
  if (/^[a-z0-9][a-z0-9-]{0,63}$/u.test(given)) return given;
  throw new RootstepError("USAGE", {
    what: `"${given}" is no run name: small letters, digits and - only`,
    where: "--run",
  });
}

function renderRecording(report: RecordReport, outcome: Outcome | undefined): string {
  const lanes = Object.entries(report.lanes).map(([lane, calls]) => `${lane} ${calls}`);
  return [
    `${report.calls} calls on tape in ${resolve(report.tape)} (${lanes.join(", ")})`,
    ...(report.toolExchanges > 0 ? [`${report.toolExchanges} exchanges with tools`] : []),
    ...(report.retried > 0 ? [`${report.retried} attempts were retried and are folded`] : []),
    ...(report.failed > 0 ? [`${report.failed} calls failed for good (429 or 5xx): they cannot be replayed`] : []),
    endOf(report),
    ...solved(outcome),
    `its steps: rootstep replay show ${report.tape} --steps`,
    `check it: rootstep replay ${report.tape} --check${outcome === undefined ? " -- CMD" : ""}`,
  ].join("\n");
}

export function solved(outcome: Outcome | undefined): string[] {
  return outcome === undefined ? [] : [`the task is ${outcome.success ? "solved" : "not solved"}`];
}

export function endOf(end: Pick<RecordReport, "exitCode" | "signal" | "timedOut" | "answer">): string {
  const how = end.timedOut
    ? "was ended at its time limit"
    : end.exitCode === null
      ? `was ended by ${end.signal}`
      : `ended with exit code ${end.exitCode}`;
  return `the program ${how}${end.answer === undefined ? "" : `; its answer: ${end.answer}`}`;
}
