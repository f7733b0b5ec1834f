import { readFileSync } from "node:fs";
import { shippedPath } from "../../src/package-root.ts";
import { askForAction } from "../analyzer/ask-for-action.ts";
import { tokensOf } from "../analyzer/edit-size.ts";
import { DOMAINS, type MistakeRequest, type ModelOperator } from "./operator.ts";

const instructions = readFileSync(shippedPath("synth", "inject", "model-mistake.md"), "utf8").trim();
const ATTEMPTS = 3;

/** Asks a model for a plausible mistake of the agent, in the action's own form. */
export const modelMistake: ModelOperator = {
  id: "model-mistake",
  title: "a mistake that a model finds plausible",
  kind: "model",
  domains: DOMAINS,
  async propose(request) {
    const original = request.steps[request.index]?.content ?? "";
    let complaint: string | undefined;
    for (let calls = 1; calls <= ATTEMPTS; calls++) {
      const interruptible = request.signal === undefined ? {} : { signal: request.signal };
      const options = { agent: "injector", epoch: calls, ...interruptible };
      const answer = await askForAction(request.model, messagesFor(request, complaint), options);
      complaint = answer.kind === "action" ? mistakeFault(original, answer.action) : answer.why;
      if (answer.kind === "action" && complaint === undefined) return { action: answer.action, calls };
    }
    return { action: undefined, calls: ATTEMPTS };
  },
};

function messagesFor({ task, steps, index, shown }: MistakeRequest, complaint: string | undefined) {
  const log = steps.slice(0, index).map((step) => `${step.index} ${step.agent}: ${step.content}`);
  const step = steps[index];
  const user = [
    `Problem: ${task.text}`,
    `Log:\n${log.join("\n")}`,
    ...(shown === "" ? [] : [`What the agent was shown:\n${shown}`]),
    `Step\nAgent: ${step?.agent}\nAction: ${step?.content}`,
    ...(complaint === undefined ? [] : [`Your last proposal was refused: ${complaint}.`]),
  ].join("\n\n");
  return [
    { role: "system", content: instructions },
    { role: "user", content: user },
  ] as const;
}

/** Words by which a mistake gives itself away. */
const TELLTALE =
  /\b(?:mistake\w*|mistaken(?:ly)?|incorrect\w*|wrong\w*|error\w*|inject\w*|deliberate\w*|intentional\w*|oops|misread\w*)\b/iu;

/** Why an action would betray that it was made up, or is no mistake; undefined where it may stand. */
export function mistakeFault(original: string, action: string): string | undefined {
  if (action.trim() === original.trim()) return "it is the step as it was";
  const telltale = TELLTALE.exec(action)?.[0];
  if (telltale !== undefined && !original.toLowerCase().includes(telltale.toLowerCase())) {
    return `"${telltale}" gives the mistake away`;
  }
  if (formOf(action) !== formOf(original)) return "it has not the form of the step (label, code fence, lines)";
  const [before, after] = [tokensOf(original).length, tokensOf(action).length];
  const room = Math.max(4, Math.ceil(before / 3));
  return Math.abs(after - before) > room ? `it has ${after} words in place of ${before}` : undefined;
}

/** What the eye sees before it reads: the label, fences, whether there is one line or several. */
function formOf(text: string): string {
  const label = /^\w+(?= ?\d*:)/u.exec(text)?.[0] ?? "";
  return JSON.stringify([label, (text.match(/```/gu) ?? []).length, text.trim().includes("\n")]);
}
