import { byId } from "../../src/registry.ts";
import { droppedConstraint } from "./dropped-constraint.ts";
import { fabricatedFact } from "./fabricated-fact.ts";
import { misreadToolResult } from "./misread-tool-result.ts";
import { modelMistake } from "./model-mistake.ts";
import { type ChoosingOperator, DOMAINS, type InjectionOperator, type RuleOperator } from "./operator.ts";
import { prematureStop } from "./premature-stop.ts";
import { wrongArgument } from "./wrong-argument.ts";
import { wrongEntity } from "./wrong-entity.ts";
import { wrongNumberOperator } from "./wrong-number.ts";
import { wrongOperatorOperator } from "./wrong-operator.ts";

/** The rules; a new one is a file and a line here. */
export const ruleOperators: readonly RuleOperator[] = [
  wrongNumberOperator,
  wrongOperatorOperator,
  droppedConstraint,
  wrongArgument,
  wrongEntity,
  fabricatedFact,
  prematureStop,
  misreadToolResult,
];

/** Whichever rule applies: at each point the rules of the domain in a drawn order, the first that finds something. */
export const anyOperator: ChoosingOperator = {
  id: "any",
  title: "whichever rule finds something to change, drawn anew for each point",
  kind: "choice",
  domains: DOMAINS,
  choose(action, random, context) {
    const domain = context?.domain;
    const fitting = ruleOperators.filter(({ domains }) => domain === undefined || domains.includes(domain));
    for (const operator of random.shuffle(fitting)) {
      const perturbed = operator.perturb(action, random, context);
      if (perturbed !== undefined) return { operator: operator.id, action: perturbed };
    }
    return undefined;
  },
};

/** Every perturbation. */
export const injectionOperators: readonly InjectionOperator[] = [...ruleOperators, anyOperator, modelMistake];

/** @throws RootstepError UNKNOWN_NAME listing the known ones */
export function injectionOperatorById(id: string): InjectionOperator {
  return byId(injectionOperators, id, "injection operator", "inject.operator");
}
