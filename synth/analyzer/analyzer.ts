import { readFileSync } from "node:fs";
import { z } from "zod";
import type { ChatModel, ChatRequest } from "../../src/models/chat-model.ts";
import { shippedPath } from "../../src/package-root.ts";
import type { Step, Task } from "../../src/trajectory/schema.ts";
import { leakOf } from "./leak-guard.ts";

const instructions = readFileSync(shippedPath("synth", "analyzer", "prompt.md"), "utf8").trim();

const answerSchema = z.object({ action: z.string().min(1), reason: z.string().optional() });

export interface Correction {
  readonly step: number;
  readonly action: string;
  readonly attempts: number;
  /** Characters that differ from the original action, both ways: how invasive the edit is. */
  readonly editSize: number;
  /** What became of the attempts that were dropped. */
  readonly rejected: readonly string[];
}

export interface AnalyzerOptions {
  readonly model: ChatModel;
  readonly attempts: number;
  readonly signal?: AbortSignal;
}

/**
 * πanalyzer (§4.1): asks for a minimally invasive corrected action for one step of a failed run. It sees the problem, the
 * reference answer, the steps before, the action and the environment's verdict. Answers that cannot be parsed or that
 * leak the final answer are asked for again.
 *
 * @returns undefined with the reasons in `rejected` if no attempt was usable
 */
export async function proposeCorrection(
  task: Task,
  steps: readonly Step[],
  index: number,
  options: AnalyzerOptions,
): Promise<Correction | { readonly step: number; readonly action?: undefined; readonly rejected: readonly string[] }> {
  const original = steps[index]?.content ?? "";
  const visible = [task.text, ...steps.slice(0, index).map((step) => step.content)].join("\n");
  const rejected: string[] = [];
  for (let attempt = 1; attempt <= options.attempts; attempt++) {
    const request = correctionRequest(task, steps, index, rejected.at(-1));
    const response = await options.model.complete(request, {
      agent: "analyzer",
      epoch: attempt,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    const action = readAction(response.content);
    if (action === undefined) {
      rejected.push("the answer is not the JSON asked for");
      continue;
    }
    const leak = leakOf(action, { original, visible, answer: task.referenceAnswer ?? "" });
    if (leak === undefined)
      return { step: index, action, attempts: attempt, editSize: editSize(original, action), rejected };
    rejected.push(leak);
  }
  return { step: index, rejected };
}

function correctionRequest(
  task: Task,
  steps: readonly Step[],
  index: number,
  complaint: string | undefined,
): ChatRequest {
  const log = steps.slice(0, index).map((step) => `${step.index} ${step.agent}: ${step.content}`);
  const step = steps[index];
  const user = [
    `Problem: ${task.text}`,
    `Right final answer: ${task.referenceAnswer ?? "unknown"}`,
    `Log:\n${log.join("\n")}`,
    `Step under examination: ${index}\nAgent: ${step?.agent}\nAction: ${step?.content}`,
    "Feedback of the environment: the run ended with a wrong answer.",
    ...(complaint === undefined ? [] : [`Your last proposal was refused: ${complaint}.`]),
  ];
  return {
    messages: [
      { role: "system", content: instructions },
      { role: "user", content: user.join("\n\n") },
    ],
    responseFormat: { type: "json_object" },
  };
}

/** The action in an answer, with reasoning and code fences around the JSON dropped; undefined if there is none. */
function readAction(content: string): string | undefined {
  const json = /\{[\s\S]*\}/u.exec(content.replace(/<think>[\s\S]*?<\/think>/gu, ""))?.[0];
  if (json === undefined) return undefined;
  try {
    const parsed = answerSchema.safeParse(JSON.parse(json));
    return parsed.success ? parsed.data.action.trim() : undefined;
  } catch {
    return undefined; // reported by the caller as a rejected attempt
  }
}

/** Length of both texts less their common beginning and end. */
export function editSize(before: string, after: string): number {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  return before.length + after.length - 2 * (head + tail);
}
