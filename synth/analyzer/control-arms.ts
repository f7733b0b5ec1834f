import { readFileSync } from "node:fs";
import type { ChatModel } from "../../src/models/chat-model.ts";
import { shippedPath } from "../../src/package-root.ts";
import type { Step, Task } from "../../src/trajectory/schema.ts";
import { askForAction } from "./ask-for-action.ts";
import { tokensOf } from "./edit-size.ts";

const instructions = readFileSync(shippedPath("synth", "analyzer", "placebo.md"), "utf8").trim();

export interface PlaceboOptions {
  readonly model: ChatModel;
  readonly attempts: number;
  readonly signal?: AbortSignal;
}

/**
 * The placebo of a correction: the original action in other words, wrong as it was. What it does to the outcome is what
 * editing alone does. A rephrasing that changes a number or hardly keeps a word is asked for again, then given up.
 *
 * @throws RootstepError MODEL_*, BUDGET_REACHED, INTERRUPTED
 */
export async function proposePlacebo(
  task: Task,
  step: Step,
  { model, attempts, signal }: PlaceboOptions,
): Promise<{ readonly action?: string; readonly attempts: number; readonly rejected: readonly string[] }> {
  const rejected: string[] = [];
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const complaint = rejected.at(-1);
    const user = [
      `Problem: ${task.text}`,
      `Step to rephrase\nAgent: ${step.agent}\nAction: ${step.content}`,
      ...(complaint === undefined ? [] : [`Your last rephrasing was refused: ${complaint}.`]),
    ].join("\n\n");
    const messages = [
      { role: "system", content: instructions },
      { role: "user", content: user },
    ] as const;
    const interruptible = signal === undefined ? {} : { signal };
    const answer = await askForAction(model, messages, { agent: "placebo", epoch: attempt, ...interruptible });
    const fault = answer.kind === "action" ? placeboFault(step.content, answer.action) : answer.why;
    if (answer.kind === "action" && fault === undefined) return { action: answer.action, attempts: attempt, rejected };
    rejected.push(fault ?? "");
  }
  return { attempts, rejected };
}

/** Why a text is no placebo for an action; undefined where it is one. */
export function placeboFault(original: string, rephrased: string): string | undefined {
  if (rephrased.trim() === original.trim()) return "it is the same text";
  const [before, after] = [numbersIn(original), numbersIn(rephrased)];
  if (before.join(" ") !== after.join(" ")) {
    return `it changes the numbers [${before.join(", ")}] to [${after.join(", ")}]`;
  }
  const longer = tokensOf(rephrased).length - 3 * tokensOf(original).length;
  return longer > 20 ? "it is much longer than the step" : undefined;
}

/** All numbers and operators, in no order: other words may come in another order. */
function numbersIn(text: string): string[] {
  return (text.match(/\d+(?:\.\d+)?/gu) ?? []).sort();
}

/**
 * The hint: the original action, wrong as it was, with the answer given away. If the run then succeeds as often as with the
 * correction, that the correction helps proves nothing about this step.
 *
 * @returns undefined where the task has no answer that could be told
 */
export function hintFor(task: Task, original: string): string | undefined {
  const answer = task.referenceAnswer?.trim() ?? "";
  return answer === "" ? undefined : `${original}\n(Hint: the final answer is ${answer}.)`;
}
