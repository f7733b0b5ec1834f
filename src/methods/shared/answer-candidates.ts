import type { ParsePath } from "../method.ts";
import { jsonObjects, keyName } from "./json-objects.ts";

/** One answer found in a model's output: raw text of its parts and where it ends. */
export interface AnswerCandidate {
  readonly agent: string | undefined;
  readonly step: string | undefined;
  readonly reason?: string | undefined;
  readonly path: Extract<ParsePath, "answer-tag" | "json" | "labelled-lines" | "markdown">;
  /** Where in the output it stands: later answers replace earlier ones. */
  readonly at: number;
  readonly end: number;
}

/** Every answer in the output, in order. What tags or JSON hold is not read again as labelled lines. */
export function answerCandidates(text: string): AnswerCandidate[] {
  const exact = [...answerTags(text), ...jsonAnswers(text)];
  let rest = text;
  for (const { at, end } of exact) rest = rest.slice(0, at) + "\n".repeat(end - at) + rest.slice(end);
  return [...exact, ...labelledAnswers(rest)].sort((a, b) => a.at - b.at);
}

/** Keys under which models name an agent, in the form of `keyName`. */
export const AGENT_KEYS = new Set(["agent", "agentname", "agentid", "mistakeagent", "responsibleagent", "faultyagent"]);
const STEP_KEYS = new Set(["step", "stepnumber", "stepid", "stepindex", "mistakestep", "decisivestep", "errorstep"]);
/** Keys under which models give their reason. */
export const REASON_KEYS = new Set(["reason", "explanation", "why"]);

/** `<answer>agent | step</answer>`, the last ` | ` splits. */
function answerTags(text: string): AnswerCandidate[] {
  const found: AnswerCandidate[] = [];
  for (let open = text.indexOf("<answer>"); open >= 0; ) {
    const close = text.indexOf("</answer>", open);
    if (close < 0) break;
    const body = text.slice(open + "<answer>".length, close);
    const end = close + "</answer>".length;
    const bar = body.lastIndexOf("|");
    if (bar >= 0)
      found.push({ agent: body.slice(0, bar), step: body.slice(bar + 1), path: "answer-tag", at: open, end });
    open = text.indexOf("<answer>", close);
  }
  return found;
}

/** JSON objects, bare, fenced or nested, that have both an agent and a step. */
function jsonAnswers(text: string): AnswerCandidate[] {
  return jsonObjects(text).flatMap(({ value, at, end }) => answersIn(value, at, end));
}

function answersIn(value: unknown, at: number, end: number): AnswerCandidate[] {
  if (typeof value !== "object" || value === null) return [];
  const entries = Object.entries(value);
  const field = (keys: ReadonlySet<string>): string | undefined => {
    const found = entries.find(([key]) => keys.has(keyName(key)))?.[1];
    return typeof found === "string" || typeof found === "number" ? String(found) : undefined;
  };
  const agent = field(AGENT_KEYS);
  const step = field(STEP_KEYS);
  if (agent !== undefined && step !== undefined) {
    return [{ agent, step, reason: field(REASON_KEYS), path: "json", at, end }];
  }
  return entries.flatMap(([, inner]) => answersIn(inner, at, end));
}

// A label at the start of a line or after a separator, with any markdown or quotes around it: `**Agent Name:** X`, `- agent: X`,
// `'agent': 'X'`.
const LABEL =
  /(^|[\n,;{(])[^\S\n]*(?:[-*•>#]+[^\S\n]+|[0-9]+[.)][^\S\n]+)?(["'`*_]*)((?:responsible |faulty |mistake[ _])?agent(?:[ _-]?(?:name|id))?|(?:decisive |error |mistake[ _])?step(?:[ _-]?(?:number|index|id))?|reason(?: for mistake)?)(["'`*_]*)[^\S\n]*[:=][^\S\n]*(["'`*_]*)/giu;

/** Lines such as `Agent Name: X` and `Step Number: 3`, in either order, in plain text or markdown. */
function labelledAnswers(text: string): AnswerCandidate[] {
  const found: AnswerCandidate[] = [];
  let open: { agent?: string; step?: string; reason?: string; markdown: boolean; at: number } | undefined;
  const close = (): void => {
    if (open !== undefined && (open.agent !== undefined || open.step !== undefined)) {
      const { agent, step, reason, markdown, at } = open;
      found.push({ agent, step, reason, path: markdown ? "markdown" : "labelled-lines", at, end: at });
    }
    open = undefined;
  };
  for (const match of text.matchAll(LABEL)) {
    const [whole, , before = "", label = "", , after = ""] = match;
    const field = /reason/iu.test(label) ? "reason" : /step/iu.test(label) ? "step" : "agent";
    if (open?.[field] !== undefined) close();
    open ??= { markdown: false, at: match.index };
    open[field] = valueAt(text, match.index + whole.length, field);
    open.at = match.index;
    if (before.includes("*") || after.includes("*")) open.markdown = true;
  }
  close();
  return found;
}

/** The value after a label: the rest of the line, or the next line where a model breaks there, up to the next field. */
function valueAt(text: string, start: number, field: "agent" | "step" | "reason"): string {
  const [first = "", second = ""] = text.slice(start, start + 2000).split(/\n\s*/u, 2);
  const line = first.trim() !== "" || second.includes(":") ? first : second;
  if (field === "reason") return line.trim();
  const [value = ""] = line.split(
    field === "agent" ? /["'`*]|[,;](?=[^\S\n]*["'`*_]*step)/iu : /["'`*};]|,(?![^\S\n]*[0-9])/u,
  );
  return value.trim();
}
