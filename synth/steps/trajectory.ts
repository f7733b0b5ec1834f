import { RootstepError } from "../../src/errors.ts";
import {
  type Outcome,
  type Step,
  type StepToolCall,
  type Task,
  TRAJECTORY_SCHEMA_VERSION,
  type Trajectory,
  type Usage,
} from "../../src/trajectory/schema.ts";
import type { TapeFolder } from "../tape/loader.ts";
import type { NameAgent } from "./agent-names.ts";
import { perCall } from "./per-call.ts";
import { type AgentCall, recordedRun } from "./recorded-run.ts";
import type { StepDraft, StepPolicy } from "./step-policy.ts";
import { type ToolResults, toolResults } from "./tool-results.ts";

export interface TapeTrajectoryOptions {
  /** Default: `per-call`. */
  readonly policy?: StepPolicy | undefined;
  /** An adapter's names for agents. */
  readonly nameAgent?: NameAgent | undefined;
  /** Default: what the first agent was first asked. */
  readonly task?: Task | undefined;
  /** Default: the command. */
  readonly system?: string | undefined;
  /** The task checker's verdict. Default: success is an exit with code 0, which says nothing of the answer. */
  readonly outcome?: Outcome | undefined;
}

/** How rootstep's simulator names itself in its answers: its runs are never mixed into real ones unmarked. */
const SIMULATOR = "simulator:";

/** Name of the checker of runs without a task: it looks at the exit code only. */
export const EXIT_CODE = "exit-code";

/**
 * The run on a tape as a trajectory: steps by the policy, tool calls with the results that later requests quote, the calls
 * of each step, so that a replay can be cut there.
 *
 * @throws RootstepError NO_STEPS where no agent said anything; TAPE_DAMAGED (bodies)
 */
export function trajectoryFromTape(tape: TapeFolder, options: TapeTrajectoryOptions = {}): Trajectory {
  const { policy = perCall } = options;
  const run = recordedRun(tape, options.nameAgent);
  const results = toolResults(run.calls);
  const drafts = checked(policy.steps(run), policy.id);
  if (drafts.length === 0) {
    throw new RootstepError("NO_STEPS", { what: "the tape holds no answer of an agent", where: tape.path });
  }
  const startedAt = Date.parse(tape.header.startedAt);
  const at = (ms: number): string => new Date(startedAt + ms).toISOString();
  const inSteps = drafts.reduce((sum, { calls }) => sum + calls.length, 0);
  const { header } = tape;
  return {
    schemaVersion: TRAJECTORY_SCHEMA_VERSION,
    id: header.run,
    task: options.task ?? askedFirst(run.calls, header.run),
    system: options.system ?? header.program?.system ?? header.command.join(" "),
    stepPolicy: policy.id,
    steps: drafts.map((draft, index) => stepOf(draft, index, results, at)),
    outcome: options.outcome ?? outcomeOf(tape),
    labels: [],
    provenance: {
      kind: tape.calls.some(({ from }) => from !== "live") ? "rerun" : "recorded",
      ...modelOf(tape, run.calls),
      simulated: run.calls.some(({ answer }) => answer.model?.startsWith(SIMULATOR) === true),
      file: tape.path,
      conversions: [],
      extra: { lanes: run.lanes, failedCalls: run.failed, callsOutsideSteps: run.calls.length - inSteps },
    },
  };
}

/** @throws RootstepError INTERNAL: a policy is code of ours or of an adapter */
function checked(drafts: readonly StepDraft[], policy: string): readonly StepDraft[] {
  const seen = new Set<number>();
  for (const { agent, calls } of drafts) {
    if (agent.trim() === "" || calls.length === 0) {
      throw new RootstepError("INTERNAL", { what: `the step policy ${policy} made a step without an agent or a call` });
    }
    for (const { number } of calls) {
      if (seen.has(number)) {
        throw new RootstepError("INTERNAL", { what: `the step policy ${policy} put call ${number} into two steps` });
      }
      seen.add(number);
    }
  }
  return drafts;
}

function stepOf(draft: StepDraft, index: number, results: ToolResults, at: (ms: number) => string): Step {
  const { agent, calls, role, kind = "message" } = draft;
  const said = calls.map(({ content }) => content.trim()).filter((content) => content !== "");
  const usage = sumOf(calls.flatMap((call) => (call.usage === undefined ? [] : [call.usage])));
  const marks = marksOf(calls);
  return {
    index,
    agent,
    ...(role === undefined ? {} : { role }),
    kind,
    content: draft.content ?? said.join("\n\n"),
    toolCalls: calls.flatMap((call) => toolCallsOf(call, results)),
    retrieved: [],
    callIds: calls.map(({ number }) => String(number)),
    ...(usage === undefined ? {} : { usage }),
    startedAt: at(Math.min(...calls.map(({ askedAt }) => askedAt))),
    endedAt: at(Math.max(...calls.map(({ answeredAt }) => answeredAt))),
    ...(marks === undefined ? {} : { extra: marks }),
  };
}

function toolCallsOf({ answer, number }: AgentCall, results: ToolResults): StepToolCall[] {
  return answer.toolCalls.map((call, position) => {
    const result = results.get(call);
    // Where a server gives no ids, the place does.
    const id = call.id === "" ? `${number}-${position}` : call.id;
    return { id, name: call.name, arguments: call.arguments, ...(result === undefined ? {} : { result }) };
  });
}

/** What a reader has to know of calls that did not go as they should. */
function marksOf(calls: readonly AgentCall[]): Record<string, unknown> | undefined {
  const broken = calls.flatMap(({ number, stored, answer }) => {
    const { outcome, status } = stored.response;
    if (outcome === "complete" && status < 400) return [];
    return [{ call: number, outcome, status, ...(answer.error === undefined ? {} : { error: answer.error }) }];
  });
  const replaced = calls.filter(({ stored }) => stored.from === "action").map(({ number }) => number);
  if (broken.length + replaced.length === 0) return undefined;
  return {
    ...(broken.length === 0 ? {} : { brokenCalls: broken }),
    ...(replaced.length === 0 ? {} : { replacedCalls: replaced }),
  };
}

function sumOf(usages: readonly Usage[]): Usage | undefined {
  if (usages.length === 0) return undefined;
  return {
    promptTokens: usages.reduce((sum, { promptTokens }) => sum + promptTokens, 0),
    completionTokens: usages.reduce((sum, { completionTokens }) => sum + completionTokens, 0),
  };
}

function modelOf({ header }: TapeFolder, calls: readonly AgentCall[]): { readonly model?: string } {
  const asked = header.program?.model;
  const answered = [...new Set(calls.flatMap(({ answer }) => (answer.model === undefined ? [] : [answer.model])))];
  const model = asked ?? (answered.length === 0 ? undefined : answered.join(", "));
  return model === undefined ? {} : { model };
}

/** Without a task: what a user, or the program for one, first asked. */
function askedFirst(calls: readonly AgentCall[], run: string): Task {
  const [first] = [...calls].sort((a, b) => a.number - b.number);
  const asked = first?.prompt.find(({ role }) => role === "user") ?? first?.prompt[0];
  return { id: run, text: asked?.text ?? "", source: "recorded", groupId: run };
}

function outcomeOf({ end }: TapeFolder): Outcome {
  if (end === undefined) return { success: false, checker: EXIT_CODE, detail: "the recording was interrupted" };
  const success = end.exitCode === 0 && !end.timedOut;
  const detail = end.timedOut ? "time limit" : `exit ${end.exitCode ?? end.signal}`;
  return { success, checker: EXIT_CODE, detail, ...(end.answer === undefined ? {} : { answer: end.answer }) };
}
