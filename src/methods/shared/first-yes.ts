import { stripRemark } from "../../trajectory/agent-name.ts";
import type { Attribution, ParsePath } from "../method.ts";
import type { MethodView, ViewStep } from "../view.ts";
import { explained } from "./answer-text.ts";
import type { Dialogue } from "./dialogue.ts";
import { type LogPrompt, logPrompt, type PromptSettings, promptCharacters, viewOfSteps } from "./log-prompt.ts";
import { parseYesNo } from "./parse-choice.ts";
import type { PromptTemplate } from "./prompt-template.ts";

/** Answer of the question whether the latest step is decisive. */
export const VERDICT_SCHEMA = {
  name: "verdict",
  schema: {
    type: "object",
    properties: { reason: { type: "string" }, verdict: { type: "string", enum: ["yes", "no"] } },
    required: ["reason", "verdict"],
    additionalProperties: false,
  },
} as const;

/** The prompt about the run up to and with a step. Nothing of later steps is in it. */
export function prefixPrompt(
  template: PromptTemplate,
  view: MethodView,
  step: ViewStep,
  settings: PromptSettings,
): LogPrompt {
  const prefix = viewOfSteps(view, 0, step.index + 1);
  return logPrompt(template, prefix, settings, { step: String(step.index), agent: step.agent });
}

/** Characters over the prompts about these steps. */
export function prefixCharacters(
  template: PromptTemplate,
  view: MethodView,
  steps: readonly ViewStep[],
  settings: PromptSettings,
): number {
  return steps.reduce((total, step) => total + promptCharacters(prefixPrompt(template, view, step, settings)), 0);
}

/** Calls until the first yes, where each of `steps` steps is the decisive one equally often. */
export function expectedCalls(steps: number): number {
  return Math.ceil((steps + 1) / 2);
}

/** The step that was called decisive first, or why there is none. */
export type FirstYes =
  | { readonly step: ViewStep; readonly parsePath: ParsePath }
  | { readonly step: null; readonly noStepNamed: true }
  | { readonly step: null; readonly parseFailure: string };

/**
 * Asks of each step, with the log up to it, whether it is the decisive error, and stops at the first yes. An answer that
 * cannot be read is taken as a no and noted. Without any yes there is no step: none is made up. Where all
 * answers were read that is the protocol's own outcome; a parse failure only where one that could not be read may have been a yes.
 */
export async function firstYes(
  dialogue: Dialogue,
  template: PromptTemplate,
  view: MethodView,
  steps: readonly ViewStep[],
): Promise<FirstYes> {
  let unread = 0;
  for (const step of steps) {
    const response = await dialogue.ask({
      name: `step ${step.index}`,
      prompt: (settings) => prefixPrompt(template, view, step, settings),
      schema: VERDICT_SCHEMA,
    });
    const { choice, parsePath, parseFailure, reason } = explained(
      parseYesNo(response.content, ["decisive", "decisiveerror", "iserror", "error", "mistake"]),
      response.finishReason,
    );
    if (choice === "yes") {
      dialogue.note({ step: step.index, text: reason ?? "called the decisive error" });
      return { step, parsePath };
    }
    if (choice === null) {
      unread++;
      dialogue.note({ step: step.index, text: `unreadable, taken as no: ${parseFailure ?? "no answer"}` });
    }
  }
  if (unread === 0) return { step: null, noStepNamed: true };
  const parseFailure = `no step was called the decisive error; ${unread} of ${steps.length} answers could not be read`;
  return { step: null, parseFailure };
}

type FoundAnswer = Pick<Attribution, "agent" | "step" | "parsePath" | "parseFailure" | "noStepNamed">;

/** `firstYes` as the parts of an attribution, with the agent that acts at the step. */
export function toAnswer(found: FirstYes): FoundAnswer {
  if (found.step === null) return { agent: null, parsePath: "none", ...found };
  return { agent: stripRemark(found.step.agent), step: found.step.index, parsePath: found.parsePath };
}
