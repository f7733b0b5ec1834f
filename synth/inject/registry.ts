import { byId } from "../../src/registry.ts";
import type { InjectionOperator } from "./operator.ts";
import { wrongNumberOperator } from "./wrong-number.ts";

/** Every perturbation; a new one is a file and a line here. */
export const injectionOperators: readonly InjectionOperator[] = [wrongNumberOperator];

/** @throws RootstepError UNKNOWN_NAME listing the known ones */
export function injectionOperatorById(id: string): InjectionOperator {
  return byId(injectionOperators, id, "injection operator", "inject.operator");
}
