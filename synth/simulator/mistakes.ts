import type { RandomStream } from "../../src/random.ts";
import { apply, type Calculation, type Operand, type Operator } from "../tasks/calculations.ts";
import { wrongNumber } from "../tasks/wrong-number.ts";
import type { Utterance } from "./continuation.ts";

export type MistakeKind = "operator" | "operand" | "carry" | "arithmetic" | "misreading";

/** A wrong utterance in place of a right one, of the same form: nothing but its content tells that it is wrong. */
export function makeMistake(
  right: Utterance,
  random: RandomStream,
): { readonly wrong: Utterance; readonly kind: MistakeKind } {
  switch (right.kind) {
    case "plan":
      return wrongPlan(right, random);
    case "solution":
      return wrongSolution(right, random);
    case "check":
      return { wrong: { ...right, value: wrongNumber(right.value, random) }, kind: "misreading" };
  }
}

function wrongPlan(right: Utterance & { kind: "plan" }, random: RandomStream): { wrong: Utterance; kind: MistakeKind } {
  const { calculation } = right;
  const changes: { calculation: Calculation; kind: MistakeKind }[] = [
    { calculation: { ...calculation, operator: wrongOperator(calculation.operator) }, kind: "operator" },
  ];
  for (const side of ["left", "right"] as const) {
    const operand: Operand = calculation[side];
    if (operand.kind !== "number") continue;
    const value = wrongNumber(operand.value, random);
    changes.push({ calculation: { ...calculation, [side]: { kind: "number", value } }, kind: "operand" });
  }
  const { calculation: changed, kind } = random.pick(changes);
  return { wrong: { ...right, calculation: changed }, kind };
}

function wrongSolution(
  right: Utterance & { kind: "solution" },
  random: RandomStream,
): { wrong: Utterance; kind: MistakeKind } {
  const kind = random.pick(["carry", "operand", "arithmetic"] as const);
  if (kind === "arithmetic") return { wrong: { ...right, value: wrongNumber(right.value, random) }, kind };
  const side = kind === "carry" ? "left" : "right";
  const changed = { ...right, [side]: wrongNumber(right[side], random) };
  const value = apply(changed.operator, changed.left, changed.right);
  if (Number.isFinite(value) && value !== right.value) return { wrong: { ...changed, value }, kind };
  return { wrong: { ...right, value: wrongNumber(right.value, random) }, kind: "arithmetic" };
}

const SWAPPED: Record<Operator, Operator> = { "+": "-", "-": "+", "*": "+", "/": "-" };

/** The operation people mix it up with; one that cannot turn a whole number into a fraction. */
export function wrongOperator(operator: Operator): Operator {
  return SWAPPED[operator];
}
