import { RootstepError } from "../../../src/errors.ts";
import type { Step, Trajectory } from "../../../src/trajectory/schema.ts";
import { layout } from "./chain-arithmetic.ts";
import { parseOperation, parseValue, type Reference, readReference } from "./reference.ts";
import type { ChainAgent, Operation } from "./vocabulary.ts";

/** What one step of a planner–solver–verifier run says, as numbers. */
export type ChainStep =
  | { readonly agent: "planner"; readonly start?: number; readonly operation: Operation }
  | { readonly agent: "solver"; readonly left: number; readonly operation: Operation; readonly result: number }
  | { readonly agent: "verifier"; readonly value: number };

/** A run on a chain of calculations: the reference solution and what the agents wrote. */
export interface Chain extends Reference {
  readonly steps: readonly ChainStep[];
}

/**
 * Reads a run of planner, solver and verifier on a chain of calculations.
 *
 * A planner writes `Plan 1: 16 - 3` and `Plan 2: previous * 2` (the last one may end in ` (last)`), a solver `16 - 3 = 13`, a verifier
 * `Checked: the current value is 13.` or, at the end, `Checked: the final answer is 18.`
 * @throws RootstepError VOCABULARY naming the calculation or step that does not fit.
 */
export function parseChain(trajectory: Trajectory): Chain {
  const refuse = (where: string, what: string): never => {
    throw new RootstepError("VOCABULARY", {
      what: `the embedded tracer cannot read this run: ${what}`,
      where: `${trajectory.id}, ${where}`,
    });
  };
  const reference = readReference(trajectory.task, refuse);
  const agents = layout(reference.operations.length);
  let plan = 0;
  const steps = trajectory.steps.map((step, index) => {
    const where = `step ${index} (${step.agent})`;
    const agent = agents[index];
    if (agent === undefined)
      return refuse(where, `${reference.operations.length} calculations take ${agents.length} steps`);
    if (step.agent !== agent) return refuse(where, `expected ${agent} here`);
    if (agent === "planner") plan += 1;
    const parsed = parseStep(agent, step, plan, index === agents.length - 1);
    return parsed ?? refuse(where, `"${step.content.slice(0, 60)}" is not in its grammar or its numbers have no token`);
  });
  if (steps.length < agents.length) refuse(`step ${steps.length}`, `the run ends before its ${agents.length} steps`);
  return { ...reference, steps };
}

function parseStep(agent: ChainAgent, step: Step, plan: number, isLast: boolean): ChainStep | undefined {
  switch (agent) {
    case "planner":
      return parsePlan(step.content, plan);
    case "solver":
      return parseSolution(step.content);
    case "verifier": {
      const form = isLast ? /^Checked: the final answer is (\d+)\.$/u : /^Checked: the current value is (\d+)\.$/u;
      const value = parseValue(form.exec(step.content)?.[1]);
      return value === undefined ? undefined : { agent, value };
    }
  }
}

function parsePlan(content: string, plan: number): ChainStep | undefined {
  const match = /^Plan (\d+): (\S+) ([-+*/]) (\d+)(?: \(last\))?$/u.exec(content);
  const operation = parseOperation(match?.[3], match?.[4]);
  if (operation === undefined || match?.[1] !== String(plan)) return undefined;
  if (plan > 1) return match[2] === "previous" ? { agent: "planner", operation } : undefined;
  const start = parseValue(match[2]);
  return start === undefined ? undefined : { agent: "planner", start, operation };
}

function parseSolution(content: string): ChainStep | undefined {
  const match = /^(\d+) ([-+*/]) (\d+) = (\d+)$/u.exec(content);
  const left = parseValue(match?.[1]);
  const operation = parseOperation(match?.[2], match?.[3]);
  const result = parseValue(match?.[4]);
  if (left === undefined || operation === undefined || result === undefined) return undefined;
  return { agent: "solver", left, operation, result };
}
