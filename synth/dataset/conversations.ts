import { tracerMessages } from "../../src/methods/tracer/tracer.ts";
import { methodView } from "../../src/methods/view.ts";
import type { ChatMessage } from "../../src/models/chat-model.ts";
import { parseTracerOutput } from "../../src/reward/format-gate.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";

/** A record as a lesson for a chat model: what a tracer is asked, and the answer that the reward takes in full. */
export interface Lesson {
  readonly id: string;
  readonly messages: readonly ChatMessage[];
  readonly answer: string;
  /** True where the log was shortened to fit. */
  readonly isCut: boolean;
}

/** Why a record is no lesson. */
export type Unfit = "no label" | "run succeeded" | "label outside the log" | "agent's name does not fit the answer";

/**
 * The prompt is the one a tracer gets in training and evaluation, without the reference answer. The reasoning is the
 * label's own reason where it has one, else empty: none is made up.
 *
 * @param logBudget characters of log in the prompt
 */
export function lessonOf(trajectory: Trajectory, logBudget: number): Lesson | Unfit {
  const [label] = trajectory.labels;
  if (label === undefined) return "no label";
  if (trajectory.outcome.success) return "run succeeded";
  if (trajectory.steps[label.step] === undefined) return "label outside the log";
  const answer = `<think>${label.reason ?? ""}</think><answer>${label.agent} | ${label.step}</answer>`;
  const read = parseTracerOutput(answer);
  if (!read.ok || read.agent !== label.agent.trim() || read.step !== label.step) {
    return "agent's name does not fit the answer";
  }
  const { messages, cut } = tracerMessages(methodView(trajectory, { withReference: false }), logBudget);
  return { id: trajectory.id, messages, answer, isCut: cut !== undefined };
}

const SHAREGPT_ROLES: Readonly<Record<string, string>> = { system: "system", user: "human", assistant: "gpt" };

/** ShareGPT: `{id, conversations: [{from, value}]}`. */
export function shareGptRecord({ id, messages, answer }: Lesson): unknown {
  const turns = messages.map(({ role, content }) => ({ from: SHAREGPT_ROLES[role] ?? role, value: content }));
  return { id, conversations: [...turns, { from: "gpt", value: answer }] };
}

/** OpenAI fine-tuning: `{messages: [{role, content}]}`. */
export function fineTuningRecord({ messages, answer }: Lesson): unknown {
  const turns = messages.map(({ role, content }) => ({ role, content }));
  return { messages: [...turns, { role: "assistant", content: answer }] };
}
