import type { RandomStream } from "../../src/random.ts";

/** A perturbation Π (§4.1): turns a right action into a wrong one of the same form. */
export interface InjectionOperator {
  readonly id: string;
  readonly title: string;
  /** The perturbed action, or undefined where the operator finds nothing to change. */
  perturb(action: string, random: RandomStream): string | undefined;
  /** The placebo: the same action said slightly otherwise. Its effect is what editing alone does. */
  rephrase(action: string): string;
}
