import { join } from "node:path";
import { stepPolicies, stepPolicyById } from "../../synth/steps/registry.ts";
import { trajectoryFromTape } from "../../synth/steps/trajectory.ts";
import { programSystemById } from "../../synth/systems/registry.ts";
import type { TapeFolder } from "../../synth/tape/loader.ts";
import { isError } from "../errors.ts";
import { writeTracerTraj } from "../formats/tracertraj/write.ts";
import { textTable } from "../report/table.ts";
import type { Step, Trajectory } from "../trajectory/schema.ts";
import { type Argument, type Arguments, type CommandContext, optionalString } from "./command.ts";
import { tapedTask } from "./system-program.ts";

/** The trajectory beside its tape: one record of TracerTraj, which `data validate`, `eval run` and others read as it is. */
export const TRAJECTORY_FILE = "trajectory.jsonl";

export const STEP_POLICY: Argument = {
  name: "step-policy",
  describe: "how calls become steps (default: the system's, else per-call)",
  type: "string",
  choices: stepPolicies.map(({ id }) => id),
};

/**
 * The run on a tape as a trajectory; with a system and task the task's checker decides, else the exit code.
 * @throws RootstepError NO_STEPS; UNKNOWN_NAME
 */
export async function tapeTrajectory(tape: TapeFolder, args: Arguments): Promise<Trajectory> {
  const { program } = tape.header;
  const bySystem = program?.system === undefined ? undefined : programSystemById(program.system).stepPolicy;
  const policy = stepPolicyById(optionalString(args, "step-policy") ?? bySystem ?? "per-call");
  const found = program === undefined ? undefined : await tapedTask(program);
  return trajectoryFromTape(tape, {
    policy,
    task: found?.task,
    outcome: await found?.set.check(found.task, tape.end?.answer),
  });
}

/** Puts the trajectory into the tape's folder, unless the run has no steps. @returns the file */
export async function writeTrajectory(
  tape: TapeFolder,
  args: Arguments,
  { progress }: CommandContext,
): Promise<string | undefined> {
  const file = join(tape.path, TRAJECTORY_FILE);
  try {
    await writeTracerTraj([await tapeTrajectory(tape, args)], file);
    return file;
  } catch (error) {
    if (!isError(error, "NO_STEPS")) throw error;
    progress.note(`no trajectory: ${error.what}`);
    return undefined;
  }
}

const WORDS = 70;

export function renderSteps({ id, stepPolicy, steps, outcome }: Trajectory): string {
  const verdict = `${outcome.success ? "success" : "failure"} by ${outcome.checker}`;
  return textTable(
    `${id}: ${steps.length} steps (${stepPolicy}); ${verdict}`,
    ["step", "agent", "calls", "tools", "says"],
    steps.map((step) => [String(step.index), step.agent, step.callIds.join(" "), toolsOf(step), firstWords(step)]),
  );
}

function toolsOf({ toolCalls }: Step): string {
  return toolCalls.map(({ name, result }) => (result === undefined ? `${name} (no result)` : name)).join(", ");
}

function firstWords({ content, extra }: Step): string {
  const text = content.replace(/\s+/gu, " ").trim();
  const shown = text.length > WORDS ? `${text.slice(0, WORDS - 1)}…` : text;
  return extra?.brokenCalls === undefined ? shown : `[broken] ${shown}`;
}
