import { readFileSync } from "node:fs";
import { RootstepError } from "../../errors.ts";
import type { ChatMessage } from "../../models/chat-model.ts";
import { shippedPath } from "../../package-root.ts";
import { agentsOf, type MethodView } from "../view.ts";

/** A prompt file in two parts: what the system message says, what the user message says. */
export interface PromptTemplate {
  readonly system: string;
  readonly user: string;
}

const SLOT = /\{\{([a-z_]+)\}\}/gu;
const templates = new Map<string, PromptTemplate>();

/** Reads `src/methods/NAME/FILE`, whose parts stand under the headings `# system` and `# user`. Read once. */
export function promptTemplate(method: string, file = "prompt.md"): PromptTemplate {
  const path = shippedPath("src", "methods", method, file);
  const known = templates.get(path);
  if (known !== undefined) return known;
  const [, system, user] = /^# system\n(.*?)\n# user\n(.*)$/su.exec(readFileSync(path, "utf8")) ?? [];
  if (system === undefined || user === undefined) {
    throw new RootstepError("INTERNAL", { what: "a prompt file needs the headings # system and # user", where: path });
  }
  const template = { system: system.trim(), user: user.trim() };
  templates.set(path, template);
  return template;
}

/**
 * Fills `{{slots}}` in one pass, so that text from a log that looks like a slot stays text.
 *
 * @throws RootstepError INTERNAL for a slot without a value
 */
export function fillPrompt(template: PromptTemplate, slots: Readonly<Record<string, string>>): ChatMessage[] {
  const fill = (text: string): string =>
    text.replace(SLOT, (_, name: string) => {
      const value = slots[name];
      if (value === undefined) throw new RootstepError("INTERNAL", { what: `no value for prompt slot {{${name}}}` });
      return value;
    });
  return [
    { role: "system", content: fill(template.system) },
    { role: "user", content: fill(template.user) },
  ];
}

/** The slots every prompt about a whole run has. `reference` is empty without G. */
export function runSlots(view: MethodView): { task: string; agents: string; reference: string; last_step: string } {
  const { text, referenceAnswer, referenceSolution } = view.task;
  const reference = [
    ...(referenceAnswer === undefined ? [] : [`\nThe correct answer to the task is: ${referenceAnswer}\n`]),
    ...(referenceSolution === undefined ? [] : [`\nA correct solution:\n${referenceSolution}\n`]),
  ];
  return {
    task: text,
    agents: agentsOf(view).join(", "),
    reference: reference.join(""),
    last_step: String(view.steps.length - 1),
  };
}
