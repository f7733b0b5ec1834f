import { readFileSync } from "node:fs";
import type { ChatMessage, ChatModel } from "../../src/models/chat-model.ts";
import { shippedPath } from "../../src/package-root.ts";
import type { Outcome, Step, Task } from "../../src/trajectory/schema.ts";
import { askForAction } from "./ask-for-action.ts";
import { editShare, editSize, tokensOf } from "./edit-size.ts";
import { leakOf } from "./leak-guard.ts";

const instructions = readFileSync(shippedPath("synth", "analyzer", "prompt.md"), "utf8").trim();

/** What can become of one proposal of the analyzer. `rewritten`: out of all proportion to the step. */
export type ProposalFate = "usable" | "nonsense" | "refused" | "leaked" | "rewritten";
export type ProposalCounts = Readonly<Record<ProposalFate, number>>;

export interface Correction {
  readonly step: number;
  readonly action: string;
  readonly attempts: number;
  /** Characters that differ from the original action, both ways: how invasive the edit is. */
  readonly editSize: number;
  /** The same over tokens, normalised: 0 the same, 1 nothing kept (Levenshtein distance / longer length). */
  readonly editShare: number;
  /** What became of the attempts that were dropped. */
  readonly rejected: readonly string[];
  readonly counts: ProposalCounts;
}

/** No attempt was usable. */
export interface NoCorrection {
  readonly step: number;
  readonly action?: undefined;
  readonly attempts: number;
  readonly rejected: readonly string[];
  readonly counts: ProposalCounts;
}

/** What the analyzer knows besides the steps. */
export interface RunFeedback {
  /** What the agent was shown at the step under examination: tool results and the world's answers are part of it. */
  readonly shown?: string;
  /** How the run ended, by the checker. */
  readonly outcome?: Outcome;
}

export interface AnalyzerOptions extends RunFeedback {
  readonly model: ChatModel;
  readonly attempts: number;
  readonly signal?: AbortSignal;
}

/**
 * πanalyzer (§4.1): asks for a minimally invasive corrected action for one step of a failed run. It sees the problem, the
 * reference answer, the steps before, the action and what the environment said. Answers that cannot be parsed, leak the
 * final answer or rewrite the step out of proportion are asked for again. A usable edit that is large all the same is asked
 * for once more, and the smaller one is taken.
 *
 * @returns without an action, with the reasons in `rejected`, if no attempt was usable
 * @throws RootstepError MODEL_*, BUDGET_REACHED, INTERRUPTED
 */
export async function proposeCorrection(
  task: Task,
  steps: readonly Step[],
  index: number,
  options: AnalyzerOptions,
): Promise<Correction | NoCorrection> {
  const { model, attempts, signal, shown = "" } = options;
  const original = steps[index]?.content ?? "";
  const visible = [task.text, ...steps.slice(0, index).map((step) => step.content), shown].join("\n");
  const program =
    task.referenceAnswer === undefined && task.extra?.kind === "code" ? task.referenceSolution : undefined;
  const rejected: string[] = [];
  const counts = { usable: 0, nonsense: 0, refused: 0, leaked: 0, rewritten: 0 };
  let best: { readonly action: string; readonly editShare: number } | undefined;
  let asked = 0;

  /** Why the proposal cannot be used; undefined where it can. */
  const faultOf = (action: string): { readonly fate: "leaked" | "rewritten"; readonly why: string } | undefined => {
    const leak = leakOf(action, { original, visible, answer: task.referenceAnswer ?? "", program });
    if (leak !== undefined) return { fate: "leaked", why: leak };
    const why = outOfProportion(original, action);
    return why === undefined ? undefined : { fate: "rewritten", why };
  };

  let complaint: string | undefined;
  while (asked < attempts) {
    asked++;
    const messages = correctionMessages(task, steps, index, options, complaint);
    const interruptible = signal === undefined ? {} : { signal };
    const answer = await askForAction(model, messages, { agent: "analyzer", epoch: asked, ...interruptible });
    const fault = answer.kind === "action" ? faultOf(answer.action) : { fate: answer.kind, why: answer.why };
    counts[fault?.fate ?? "usable"]++;
    if (answer.kind !== "action" || fault !== undefined) {
      if (fault !== undefined) rejected.push(fault.why);
      complaint = fault?.why;
      if (best !== undefined) break;
      continue;
    }
    const share = editShare(original, answer.action);
    const isFirst = best === undefined;
    if (best === undefined || share < best.editShare) best = { action: answer.action, editShare: share };
    if (!isFirst || !isLarge(original, share)) break;
    complaint = "it changes most of the step; change as little as makes it right";
  }
  if (best === undefined) return { step: index, attempts: asked, rejected, counts };
  return { step: index, ...best, attempts: asked, editSize: editSize(original, best.action), rejected, counts };
}

/** Tokens below which a step has nothing to keep, and the share above which an edit is large. */
const [SHORT_STEP, LARGE_SHARE] = [12, 0.8];

function isLarge(original: string, share: number): boolean {
  return share > LARGE_SHARE && tokensOf(original).length >= SHORT_STEP;
}

/** A correction may be so many times as long as its step, and so many tokens more, before it counts as another text. */
const [LONGEST, ROOM] = [4, 60];

function outOfProportion(original: string, action: string): string | undefined {
  const [before, after] = [tokensOf(original).length, tokensOf(action).length];
  if (after <= LONGEST * before + ROOM) return undefined;
  return `it rewrites a step of ${before} words as one of ${after}; keep the step's own form and length`;
}

function correctionMessages(
  task: Task,
  steps: readonly Step[],
  index: number,
  { outcome, shown = "" }: RunFeedback,
  complaint: string | undefined,
): ChatMessage[] {
  const log = steps.slice(0, index).map((step) => `${step.index} ${step.agent}: ${step.content}`);
  const step = steps[index];
  const observed = observationsIn(shown);
  const user = [
    `Problem: ${task.text}`,
    `Right final answer: ${task.referenceAnswer ?? "unknown"}`,
    `Log:\n${log.join("\n")}`,
    `Step under examination: ${index}\nAgent: ${step?.agent}\nAction: ${step?.content}`,
    ...(observed.length === 0 ? [] : [`What tools and the world answered before this step:\n${observed.join("\n")}`]),
    `Feedback of the environment: ${feedbackOf(outcome)}`,
    ...(complaint === undefined ? [] : [`Your last proposal was refused: ${complaint}.`]),
  ];
  return [
    { role: "system", content: instructions },
    { role: "user", content: user.join("\n\n") },
  ];
}

/** The lines of a team's log that no agent wrote. */
function observationsIn(shown: string): string[] {
  return shown.split("\n").filter((line) => /^> \w+: /u.test(line));
}

/** Of a long message of the checker, the beginning. */
const MOST_DETAIL = 600;

function feedbackOf(outcome: Outcome | undefined): string {
  const said = outcome?.answer === undefined ? "" : ` It answered: ${outcome.answer.slice(0, MOST_DETAIL)}.`;
  const detail = outcome?.detail === undefined ? "" : ` The checker said: ${outcome.detail.slice(0, MOST_DETAIL)}.`;
  return `the run ended with a wrong answer.${said}${detail}`;
}
