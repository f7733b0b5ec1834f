import { RootstepError } from "../../../src/errors.ts";
import type { Step, Trajectory } from "../../../src/trajectory/schema.ts";
import { type ChainAgent, hasToken, MAX_VALUE, OPERATORS, type Operation, type Operator } from "./vocabulary.ts";

/** What one step of a planner–solver–verifier run says, as numbers. */
export type ChainStep =
  | { readonly agent: "planner"; readonly start?: number; readonly operation: Operation }
  | { readonly agent: "solver"; readonly left: number; readonly operation: Operation; readonly result: number }
  | { readonly agent: "verifier"; readonly value: number };

/** A run on a chain of calculations: the reference solution and what the agents wrote. */
export interface Chain {
  readonly start: number;
  readonly operations: readonly Operation[];
  readonly steps: readonly ChainStep[];
}

/** Most calculations a chain may have; four give ten steps. */
export const MAX_CALCULATIONS = 4;

/** The agents of a run on k calculations: planner and solver for each, a verifier after every second and at the end. */
export function layout(calculations: number): ChainAgent[] {
  const agents: ChainAgent[] = [];
  for (let i = 1; i <= calculations; i += 1) {
    agents.push("planner", "solver");
    if (i % 2 === 0 && i < calculations) agents.push("verifier");
  }
  agents.push("verifier");
  return agents;
}

/** The value after an operation; undefined where it is a fraction, negative or above the largest value with a token. */
export function apply(value: number, { operator, operand }: Operation): number | undefined {
  const result = {
    "+": value + operand,
    "-": value - operand,
    "*": value * operand,
    "/": value / operand,
  }[operator];
  return Number.isInteger(result) && result >= 0 && result <= MAX_VALUE ? result : undefined;
}

/**
 * What each step should say, given the reference solution: the operation for a planner, the value for the others.
 * @throws RangeError where a value has no token; parsed chains never do.
 */
export function expectations(start: number, operations: readonly Operation[]): (Operation | number)[] {
  const expected: (Operation | number)[] = [];
  let value = start;
  let done = 0;
  for (const agent of layout(operations.length)) {
    const operation = operations[done];
    if (agent === "planner" && operation !== undefined) {
      expected.push(operation);
      const next = apply(value, operation);
      if (next === undefined) throw new RangeError(`calculation ${done + 1} leaves the range of values`);
      value = next;
      done += 1;
    } else {
      expected.push(value);
    }
  }
  return expected;
}

/**
 * Reads a trajectory in the grammar of the chain tasks (see data/embedded/README.md).
 * @throws RootstepError VOCABULARY naming the calculation or step that does not fit.
 */
export function parseChain(trajectory: Trajectory): Chain {
  const refuse = (where: string, what: string): never => {
    throw new RootstepError("VOCABULARY", {
      what: `the embedded tracer cannot read this: ${what}`,
      where: `${trajectory.id} ${where}`,
    });
  };
  const { start, operations } = parseReference(trajectory.task.extra?.calculations, refuse);
  const agents = layout(operations.length);
  if (trajectory.steps.length !== agents.length) {
    refuse(
      `step ${Math.min(trajectory.steps.length, agents.length)}`,
      `${operations.length} calculations take ${agents.length} steps, the run has ${trajectory.steps.length}`,
    );
  }
  let plan = 0;
  const steps = trajectory.steps.map((step, index) => {
    const where = `step ${index} (${step.agent})`;
    const agent = agents[index];
    if (step.agent !== agent) return refuse(where, `expected ${agent} here`);
    if (agent === "planner") plan += 1;
    const parsed = parseStep(agent, step, plan, index === agents.length - 1);
    return parsed ?? refuse(where, `"${step.content.slice(0, 60)}" is not in the chain grammar or out of its numbers`);
  });
  return { start, operations, steps };
}

type Refuse = (where: string, what: string) => never;

function parseReference(
  calculations: unknown,
  refuse: Refuse,
): { readonly start: number; readonly operations: readonly Operation[] } {
  if (!Array.isArray(calculations) || calculations.length < 1) {
    return refuse("task.extra.calculations", "the task carries no list of reference calculations");
  }
  if (calculations.length > MAX_CALCULATIONS) {
    return refuse("task.extra.calculations", `${calculations.length} calculations, at most ${MAX_CALCULATIONS} fit`);
  }
  let start: number | undefined;
  let value: number | undefined;
  const operations = calculations.map((calculation: unknown, index) => {
    const where = `task.extra.calculations[${index}]`;
    const match = typeof calculation === "string" ? /^(\S+) ([-+*/]) (\d+)$/.exec(calculation) : null;
    const operation = parseOperation(match?.[2], match?.[3]);
    const left = match?.[1];
    if (index === 0) {
      start = parseValue(left);
      value = start;
    }
    if (operation === undefined || value === undefined || (index > 0 && left !== "previous")) {
      return refuse(
        where,
        `"${String(calculation).slice(0, 60)}" is not "A op B" then "previous op B" in small integers`,
      );
    }
    value = apply(value, operation);
    if (value === undefined)
      return refuse(where, `"${String(calculation)}" does not give an integer of 0–${MAX_VALUE}`);
    return operation;
  });
  return start === undefined ? refuse("task.extra.calculations[0]", "no start value") : { start, operations };
}

function parseStep(agent: ChainAgent, step: Step, plan: number, last: boolean): ChainStep | undefined {
  switch (agent) {
    case "planner": {
      const match = /^Plan (\d+): (\S+) ([-+*/]) (\d+)(?: \(last\))?$/.exec(step.content);
      const operation = parseOperation(match?.[3], match?.[4]);
      if (operation === undefined || match?.[1] !== String(plan)) return undefined;
      if (plan > 1) return match[2] === "previous" ? { agent, operation } : undefined;
      const start = parseValue(match[2]);
      return start === undefined ? undefined : { agent, start, operation };
    }
    case "solver": {
      const match = /^(\d+) ([-+*/]) (\d+) = (\d+)$/.exec(step.content);
      const left = parseValue(match?.[1]);
      const operation = parseOperation(match?.[2], match?.[3]);
      const result = parseValue(match?.[4]);
      if (left === undefined || operation === undefined || result === undefined) return undefined;
      return { agent, left, operation, result };
    }
    case "verifier": {
      const form = last ? /^Checked: the final answer is (\d+)\.$/ : /^Checked: the current value is (\d+)\.$/;
      const value = parseValue(form.exec(step.content)?.[1]);
      return value === undefined ? undefined : { agent, value };
    }
  }
}

function parseValue(text: string | undefined): number | undefined {
  if (text === undefined || !/^(0|[1-9]\d?)$/.test(text)) return undefined;
  const value = Number(text);
  return value <= MAX_VALUE ? value : undefined;
}

function parseOperation(operator: string | undefined, operand: string | undefined): Operation | undefined {
  const known = OPERATORS.find((candidate): candidate is Operator => candidate === operator);
  if (known === undefined || operand === undefined || !/^[1-9]\d?$/.test(operand)) return undefined;
  const operation = { operator: known, operand: Number(operand) };
  return hasToken(operation) ? operation : undefined;
}
