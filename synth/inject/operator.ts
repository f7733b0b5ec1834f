import { z } from "zod";
import { RootstepError } from "../../src/errors.ts";
import type { ChatModel } from "../../src/models/chat-model.ts";
import type { RandomStream } from "../../src/random.ts";
import type { Step, Task } from "../../src/trajectory/schema.ts";

export const DOMAINS = ["math", "code", "search", "game"] as const;
export type Domain = (typeof DOMAINS)[number];

/** What an operator may go by besides the action itself. */
export interface ActionContext {
  /** Undefined for tasks of no known kind: then every operator may try. */
  readonly domain: Domain | undefined;
  /** What the agent was shown at this step: problem, log, what tools and the world answered. */
  readonly shown: string;
  /** What there is to look up, by its name, where the task says so. */
  readonly titles?: readonly string[];
}

/** No context: an action by itself. */
export const NO_CONTEXT: ActionContext = { domain: undefined, shown: "" };

interface Described {
  readonly id: string;
  readonly title: string;
  /** Kinds of tasks in which it finds something to change. */
  readonly domains: readonly Domain[];
}

/**
 * A perturbation Π (§4.1): turns a right action into a wrong one of the same form. It is pure: action, context and stream
 * decide everything.
 */
export interface RuleOperator extends Described {
  readonly kind: "rule";
  /** The perturbed action, or undefined where the operator finds nothing to change. */
  perturb(action: string, random: RandomStream, context?: ActionContext): string | undefined;
}

/** A perturbed action, and the rule that made it. */
export interface Perturbation {
  readonly operator: string;
  readonly action: string;
}

/** Chooses among rules, point by point. Pure as they are. */
export interface ChoosingOperator extends Described {
  readonly kind: "choice";
  /** Undefined where no rule finds something to change. */
  choose(action: string, random: RandomStream, context?: ActionContext): Perturbation | undefined;
}

/** What a model is asked about. */
export interface MistakeRequest {
  readonly task: Task;
  readonly steps: readonly Step[];
  readonly index: number;
  readonly shown: string;
  /** Seeds its calls itself. */
  readonly model: ChatModel;
  readonly signal?: AbortSignal | undefined;
}

/** A perturbation that a model makes. Reproducible as far as the model honours the seed of its calls. */
export interface ModelOperator extends Described {
  readonly kind: "model";
  /** @throws RootstepError MODEL_*, BUDGET_REACHED, INTERRUPTED */
  propose(request: MistakeRequest): Promise<{ readonly action: string | undefined; readonly calls: number }>;
}

export type InjectionOperator = RuleOperator | ChoosingOperator | ModelOperator;

/** The kind of task, as its set says or its worked calculations show. */
export function domainOf({ extra }: Pick<Task, "extra">): Domain | undefined {
  const kind = DOMAINS.find((domain) => domain === extra?.kind);
  return kind ?? (extra !== undefined && "calculations" in extra ? "math" : undefined);
}

const titledSchema = z.object({ paragraphs: z.array(z.object({ title: z.string() })) });

/** What an operator may go by at a step of a run. */
export function contextOf({ extra }: Pick<Task, "extra">, shown: string): ActionContext {
  const titled = titledSchema.safeParse(extra);
  const titles = titled.success ? { titles: titled.data.paragraphs.map(({ title }) => title) } : {};
  return { domain: domainOf({ extra }), shown, ...titles };
}

/** @throws RootstepError CONFIG_INVALID where an operator has nothing to do with tasks of that kind */
export function requireDomain(operator: Described, domain: Domain | undefined): void {
  if (domain === undefined || operator.domains.includes(domain)) return;
  throw new RootstepError("CONFIG_INVALID", {
    what: `operator ${operator.id} is for ${operator.domains.join(", ")}, the tasks are ${domain}`,
    where: "inject.operator",
  });
}
