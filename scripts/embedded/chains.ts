import type { RandomStream } from "../../src/random.ts";
import { type Label, TRAJECTORY_SCHEMA_VERSION, type Trajectory } from "../../src/trajectory/schema.ts";
import type { ChainStep } from "../../trainer/engines/embedded/chain.ts";
import { apply, layout } from "../../trainer/engines/embedded/chain-arithmetic.ts";
import { chainKey, isHeldOutChain } from "../../trainer/engines/embedded/held-out.ts";
import type { Reference } from "../../trainer/engines/embedded/reference.ts";
import {
  hasToken,
  MAX_VALUE,
  OPERATORS,
  type Operation,
  type Operator,
} from "../../trainer/engines/embedded/vocabulary.ts";
import { drawProblem } from "./problems.ts";

/** A failed run with the step that broke it. */
export interface FailedRun {
  readonly trajectory: Trajectory;
  /** The first wrong step: without its error the run succeeds. */
  readonly decisive: Pick<Label, "agent" | "step">;
  readonly mistake: Mistake;
}

export type Mistake = "start" | "operator" | "operand" | "carry" | "arithmetic" | "misreading";

/** Share of runs with a second error later on, as a noisy system has them; the first stays the decisive one. */
const SECOND_ERROR = 0.08;

/**
 * Draws a failed run of planner, solver and verifier on a problem of the wanted split. Every agent works from the text it sees, so an
 * error carries on. The step of the error is uniform over the run, as it is for injection and in the simulator.
 */
export function drawFailedRun(random: RandomStream, split: "train" | "held-out"): FailedRun {
  for (;;) {
    const problem = drawProblem(random);
    if (isHeldOutChain(problem) !== (split === "held-out")) continue;
    const agents = layout(problem.operations.length);
    const step = random.int(agents.length);
    const first = play(problem, new Set([step]), random);
    const right = play(problem, new Set(), random);
    if (first === undefined || right === undefined || answerOf(first.steps) === answerOf(right.steps)) continue;
    const run = random.chance(SECOND_ERROR) ? withSecondError(problem, step, agents.length, random) : first;
    const agent = agents[step];
    const mistake = run?.mistakes[0];
    if (run === undefined || agent === undefined || mistake === undefined) continue;
    if (answerOf(run.steps) === answerOf(right.steps)) continue;
    return { trajectory: write(problem, run.steps, answerOf(right.steps)), decisive: { agent, step }, mistake };
  }
}

interface Run {
  readonly steps: readonly ChainStep[];
  readonly mistakes: readonly Mistake[];
}

function withSecondError(problem: Reference, step: number, length: number, random: RandomStream): Run | undefined {
  if (step + 1 >= length) return undefined;
  return play(problem, new Set([step, step + 1 + random.int(length - step - 1)]), random);
}

/** Plays a run with errors at the given steps; undefined where a number has no token. */
function play(problem: Reference, errors: ReadonlySet<number>, random: RandomStream): Run | undefined {
  const steps: ChainStep[] = [];
  const mistakes: Mistake[] = [];
  let value = problem.start;
  let planned: Operation | undefined;
  let plans = 0;
  for (const [index, agent] of layout(problem.operations.length).entries()) {
    const right = nextStep(agent, problem, plans, planned, value);
    const wrong = errors.has(index) && right !== undefined ? err(right, random) : undefined;
    if (right === undefined || (errors.has(index) && wrong === undefined)) return undefined;
    if (wrong !== undefined) mistakes.push(wrong.mistake);
    const step = wrong?.step ?? right;
    steps.push(step);
    switch (step.agent) {
      case "planner":
        plans += 1;
        planned = step.operation;
        if (step.start !== undefined) value = step.start;
        break;
      case "solver":
        value = step.result;
        break;
      case "verifier":
        value = step.value;
        break;
    }
  }
  return { steps, mistakes };
}

function nextStep(
  agent: ChainStep["agent"],
  { start, operations }: Reference,
  plans: number,
  planned: Operation | undefined,
  value: number,
): ChainStep | undefined {
  if (agent === "verifier") return { agent, value };
  if (agent === "solver") return planned === undefined ? undefined : solve(value, planned);
  const operation = operations[plans];
  if (operation === undefined) return undefined;
  return plans === 0 ? { agent, start, operation } : { agent, operation };
}

function solve(left: number, operation: Operation): ChainStep | undefined {
  const result = apply(left, operation);
  return result === undefined ? undefined : { agent: "solver", left, operation, result };
}

/** A wrong step of the same form, or undefined where the draw gives no other step that has tokens. */
function err(
  right: ChainStep,
  random: RandomStream,
): { readonly step: ChainStep; readonly mistake: Mistake } | undefined {
  switch (right.agent) {
    case "planner": {
      const mistake = random.pick(
        right.start === undefined ? (["operator", "operand"] as const) : (["operator", "operand", "start"] as const),
      );
      if (mistake === "start") {
        const start = wrongValue(right.start ?? 0, random);
        return start === undefined ? undefined : { step: { ...right, start }, mistake };
      }
      const operation = wrongOperation(right.operation, mistake, random);
      return operation === undefined ? undefined : { step: { ...right, operation }, mistake };
    }
    case "solver": {
      const mistake = random.pick(["carry", "operand", "operator", "arithmetic"] as const);
      if (mistake === "arithmetic") {
        const result = wrongValue(right.result, random);
        return result === undefined ? undefined : { step: { ...right, result }, mistake };
      }
      const left = mistake === "carry" ? wrongValue(right.left, random) : right.left;
      const operation = mistake === "carry" ? right.operation : wrongOperation(right.operation, mistake, random);
      const step = left === undefined || operation === undefined ? undefined : solve(left, operation);
      return step === undefined ? undefined : { step, mistake };
    }
    case "verifier": {
      const value = wrongValue(right.value, random);
      return value === undefined ? undefined : { step: { ...right, value }, mistake: "misreading" };
    }
  }
}

const SWAPPED: Readonly<Record<Operator, Operator>> = { "+": "-", "-": "+", "*": "+", "/": "-" };

function wrongOperation(right: Operation, what: "operator" | "operand", random: RandomStream): Operation | undefined {
  const wrong =
    what === "operator"
      ? { ...right, operator: random.chance(0.7) ? SWAPPED[right.operator] : random.pick(OPERATORS) }
      : { ...right, operand: wrongNumber(right.operand, 12, random) };
  const same = wrong.operator === right.operator && wrong.operand === right.operand;
  return same || !hasToken(wrong) ? undefined : wrong;
}

function wrongValue(right: number, random: RandomStream): number | undefined {
  const wrong = wrongNumber(right, 59, random);
  return wrong < 0 || wrong > MAX_VALUE || wrong === right ? undefined : wrong;
}

/** Mostly a number near by or with a wrong ten, else any number up to `largest`. */
function wrongNumber(right: number, largest: number, random: RandomStream): number {
  return random.chance(0.65) ? right + random.pick([1, 2, 3, 10]) * random.pick([1, -1]) : random.int(largest + 1);
}

function answerOf(steps: readonly ChainStep[]): number | undefined {
  const last = steps.at(-1);
  return last?.agent === "verifier" ? last.value : undefined;
}

/** The run as a record, in the grammar of planner–solver–verifier. */
function write(problem: Reference, steps: readonly ChainStep[], right: number | undefined): Trajectory {
  const key = chainKey(problem);
  const spoken = (operation: Operation) => `${operation.operator} ${operation.operand}`;
  const plans = problem.operations.length;
  let plan = 0;
  const content = (step: ChainStep, last: boolean): string => {
    switch (step.agent) {
      case "planner":
        plan += 1;
        return `Plan ${plan}: ${step.start ?? "previous"} ${spoken(step.operation)}${plan === plans ? " (last)" : ""}`;
      case "solver":
        return `${step.left} ${spoken(step.operation)} = ${step.result}`;
      case "verifier":
        return `Checked: the ${last ? "final answer" : "current value"} is ${step.value}.`;
    }
  };
  return {
    schemaVersion: TRAJECTORY_SCHEMA_VERSION,
    id: `chain-${key}`,
    task: {
      id: key,
      text: `Start with ${problem.start}, then ${problem.operations.map(spoken).join(", then ")}.`,
      referenceAnswer: String(right),
      source: "chain",
      groupId: key,
      extra: {
        calculations: problem.operations.map(
          (operation, i) => `${i === 0 ? problem.start : "previous"} ${spoken(operation)}`,
        ),
      },
    },
    system: "planner-solver-verifier",
    stepPolicy: "per-call",
    steps: steps.map((step, index) => ({
      index,
      agent: step.agent,
      kind: "message",
      content: content(step, index === steps.length - 1),
      toolCalls: [],
      retrieved: [],
      callIds: [],
    })),
    outcome: { success: false, answer: String(answerOf(steps)), checker: "numeric" },
    labels: [],
    provenance: { kind: "recorded", simulated: true, conversions: [] },
  };
}

/**
 * A label as a person might give it. With probability `accuracy` it is the decisive step, otherwise a later one, where the failure shows;
 * where there is none, the decisive step. Two teams that labelled Who&When's hand-crafted logs agreed on 16 of 44 steps.
 */
export function imperfectLabel(run: FailedRun, accuracy: number, random: RandomStream): Pick<Label, "agent" | "step"> {
  const later = run.trajectory.steps.slice(run.decisive.step + 1);
  if (later.length === 0 || random.chance(accuracy)) return run.decisive;
  const { agent, index } = random.pick(later);
  return { agent, step: index };
}
