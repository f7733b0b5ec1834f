import { RootstepError } from "../../src/errors.ts";
import type { InjectionOperator } from "./operator.ts";
import { wrongNumberOperator } from "./wrong-number.ts";

/** Every perturbation; a new one is a file and a line here. */
export const injectionOperators: readonly InjectionOperator[] = [wrongNumberOperator];

/** @throws RootstepError UNKNOWN_NAME listing the known ones */
export function injectionOperatorById(id: string): InjectionOperator {
  const found = injectionOperators.find((operator) => operator.id === id);
  if (found !== undefined) return found;
  throw new RootstepError("UNKNOWN_NAME", {
    what: `there is no injection operator "${id}"; known: ${injectionOperators.map((operator) => operator.id).join(", ")}`,
    where: "inject.operator",
  });
}
