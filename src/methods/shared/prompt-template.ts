import { readFileSync } from "node:fs";
import { RootstepError } from "../../errors.ts";
import type { ChatMessage } from "../../models/chat-model.ts";
import { shippedPath } from "../../package-root.ts";
import { agentsOf, type MethodView } from "../view.ts";

/** How an answer is asked for: as text, or as JSON that the server holds to a schema. */
export type AnswerForm = "text" | "json";

/** A prompt file: what the system message says, what the user message says, and how the answer is asked for. */
export interface PromptTemplate {
  readonly system: string;
  readonly user: string;
  /** Fill the slot `{{answer_form}}`; prompts with one form have it in the user message. */
  readonly answerForms: Readonly<Partial<Record<AnswerForm, string>>>;
}

const SLOT = /\{\{([a-z_]+)\}\}/gu;
const HEADING = /^# (system|user|answer as text|answer as json)\n/mu;
const templates = new Map<string, PromptTemplate>();

/**
 * Reads `src/methods/NAME/FILE`, whose parts stand under the headings `# system`, `# user` and, where there are two forms,
 * `# answer as text` and `# answer as json`. Read once.
 */
export function promptTemplate(method: string, file = "prompt.md"): PromptTemplate {
  const path = shippedPath("src", "methods", method, file);
  const known = templates.get(path);
  if (known !== undefined) return known;
  const parts = readFileSync(path, "utf8").split(HEADING);
  const part = (heading: string): string | undefined => {
    const at = parts.findIndex((text, i) => i % 2 === 1 && text === heading);
    return at < 0 ? undefined : (parts[at + 1] ?? "").trim();
  };
  const system = part("system");
  const user = part("user");
  const text = part("answer as text");
  const json = part("answer as json");
  if (system === undefined || user === undefined) {
    throw new RootstepError("INTERNAL", { what: "a prompt file needs the headings # system and # user", where: path });
  }
  const answerForms = { ...(text !== undefined && { text }), ...(json !== undefined && { json }) };
  const template = { system, user, answerForms };
  templates.set(path, template);
  return template;
}

/**
 * Fills `{{slots}}` in one pass, so that text from a log that looks like a slot stays text.
 *
 * @throws RootstepError INTERNAL for a slot without a value
 */
export function fillPrompt(
  template: PromptTemplate,
  slots: Readonly<Record<string, string>>,
  form: AnswerForm = "text",
): ChatMessage[] {
  const fill = (text: string, values: Readonly<Record<string, string | undefined>>): string =>
    text.replace(SLOT, (_, name: string) => {
      const value = values[name];
      if (value === undefined) throw new RootstepError("INTERNAL", { what: `no value for prompt slot {{${name}}}` });
      return value;
    });
  const asked = template.answerForms[form];
  const all = asked === undefined ? slots : { ...slots, answer_form: fill(asked, slots) };
  return [
    { role: "system", content: fill(template.system, all) },
    { role: "user", content: fill(template.user, all) },
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
