import { type ChainAgent, MAX_VALUE, type Operation } from "./vocabulary.ts";

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
