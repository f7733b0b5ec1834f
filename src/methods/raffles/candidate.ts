import type { ChatResponse } from "../../models/chat-model.ts";
import { sameAgent } from "../../trajectory/agent-name.ts";
import type { ParsePath } from "../method.ts";
import { answerText, explained } from "../shared/answer-text.ts";
import { parseAnswer } from "../shared/parse-answer.ts";
import { readFields } from "../shared/read-fields.ts";
import { agentsOf, type MethodView, type ViewStep } from "../view.ts";

/** The points on which a proposal is tested, in the order in which examiners are asked. */
export const POINTS = ["error", "first", "effect"] as const;
export type Point = (typeof POINTS)[number];

/** What a point asks, in the words of the memory. */
export const POINT_TITLES: Readonly<Record<Point, string>> = {
  error: "is it an error",
  first: "is it the first",
  effect: "would fixing it change the outcome",
};

/** The judge's proposal, as it was read. */
export interface Candidate {
  readonly agent: string;
  readonly step: number;
  readonly reasons: Readonly<Partial<Record<Point, string>>>;
  readonly parsePath: ParsePath;
  readonly answers?: number;
}

/** A proposal, or what could be read of an output that holds none. */
export type Proposal =
  | { readonly candidate: Candidate }
  | { readonly candidate?: never; readonly agent: string | null; readonly parseFailure: string };

const REASON_LABELS = {
  error: ["error", "errorreason"],
  first: ["first", "firstreason", "primacy"],
  effect: ["effect", "effectreason", "outcome"],
};

/** Reads the judge's answer. */
export function readProposal({ content, finishReason }: ChatResponse, view: MethodView): Proposal {
  const parsed = explained(parseAnswer(content, agentsOf(view)), finishReason);
  const { agent, step, parsePath, parseFailure, answers } = parsed;
  if (agent === null || step === null) return { agent, parseFailure: parseFailure ?? "no proposal in the output" };
  const answer = answerText(content);
  const said = readFields("text" in answer ? answer.text : "", {
    ...REASON_LABELS,
    other: ["agent", "agentname", "step", "stepnumber"],
  });
  const reasons: Partial<Record<Point, string>> = {};
  for (const point of POINTS) {
    const reason = said?.last[point];
    if (reason !== undefined && reason !== "") reasons[point] = reason;
  }
  return { candidate: { agent, step, reasons, parsePath, ...(answers !== undefined && { answers }) } };
}

/** What the log itself says of a proposal: the step exists and the agent acts there. */
export function ruleCheck(
  { agent, step }: Pick<Candidate, "agent" | "step">,
  view: MethodView,
): { readonly holds: boolean; readonly acting: ViewStep | undefined; readonly text: string } {
  const acting = view.steps[step];
  if (acting === undefined) {
    const text = `rule check: the log has no step ${step}, only steps 0 to ${view.steps.length - 1}`;
    return { holds: false, acting, text };
  }
  if (sameAgent(acting.agent, agent)) return { holds: true, acting, text: `rule check: ${agent} acts at step ${step}` };
  return { holds: false, acting, text: `rule check: ${acting.agent} acts at step ${step}, not ${agent}` };
}
