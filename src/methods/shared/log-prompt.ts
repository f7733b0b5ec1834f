import type { ChatMessage } from "../../models/chat-model.ts";
import type { LogCut } from "../method.ts";
import type { MethodView } from "../view.ts";
import { type AnswerForm, fillPrompt, type PromptTemplate, runSlots } from "./prompt-template.ts";
import { renderLog } from "./render-log.ts";

/** A prompt with a log in it. */
export interface LogPrompt {
  readonly messages: readonly ChatMessage[];
  /** Characters that the log takes in it: what a smaller budget can make less of. */
  readonly logCharacters: number;
  readonly cut?: LogCut;
}

/** How a prompt is to be built: the answer's form and the most characters its log may take (all of it where unset). */
export interface PromptSettings {
  readonly form: AnswerForm;
  readonly logBudget: number | undefined;
}

/** Prompts by view and template: the epochs of an evaluation share a view, and so ask with the very same messages. */
const made = new WeakMap<MethodView, Map<PromptTemplate, MadePrompt>>();

interface MadePrompt {
  /** Form, budget and slots it was made with. */
  readonly key: string;
  readonly prompt: LogPrompt;
}

/** Fills a template about a run, or the part of one that `view` shows. */
export function logPrompt(
  template: PromptTemplate,
  view: MethodView,
  { form, logBudget }: PromptSettings,
  slots: Readonly<Record<string, string>> = {},
): LogPrompt {
  const ofView = made.get(view) ?? new Map<PromptTemplate, MadePrompt>();
  made.set(view, ofView);
  const key = JSON.stringify([form, logBudget, slots]);
  const known = ofView.get(template);
  if (known?.key === key) return known.prompt;
  const { text, cut } = renderLog(view, logBudget);
  const messages = fillPrompt(template, { ...runSlots(view), ...slots, log: text }, form);
  const prompt = { messages, logCharacters: text.length, ...(cut && { cut }) };
  ofView.set(template, { key, prompt });
  return prompt;
}

/** The run from step `from` up to and without step `end`; steps keep their indexes. */
export function viewOfSteps(view: MethodView, from: number, end: number): MethodView {
  return { ...view, steps: view.steps.slice(from, end) };
}

/** Characters of all messages of a prompt. */
export function promptCharacters({ messages }: Pick<LogPrompt, "messages">): number {
  return messages.reduce((total, message) => total + message.content.length, 0);
}
