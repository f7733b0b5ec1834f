import type { ParsePath } from "../method.ts";
import { REASON_KEYS } from "./answer-candidates.ts";
import { answerText, isRefusal } from "./answer-text.ts";
import { readFields } from "./read-fields.ts";

/** A confidence read from a model's free answer. */
export interface ParsedConfidence {
  /** In [0, 1]; null where none could be read. */
  readonly confidence: number | null;
  readonly parsePath: ParsePath;
  readonly parseFailure?: string;
  readonly reason?: string;
}

const KEYS = ["confidence", "confidencescore", "score", "probability", "certainty"];
const IN_PROSE =
  /\b(?:confidence|score|probability|certainty)\b[^0-9\n]{0,40}?(-?[0-9]+(?:\.[0-9]+)?\s*(?:%|\/\s*[0-9]+|out of [0-9]+)?)/iu;

/** Reads a confidence that was asked for on a scale from 0 to 100. */
export function parseConfidence(output: string): ParsedConfidence {
  const answer = answerText(output);
  if ("failure" in answer) return unread(answer.failure);
  const { text } = answer;
  const fields = readFields(text, { confidence: KEYS, reason: [...REASON_KEYS] });
  const reason = fields?.last.reason;
  const withReason = reason !== undefined && reason !== "" ? { reason } : {};
  if (fields?.last.confidence !== undefined) {
    return { ...read(fields.last.confidence, fields.path), ...withReason };
  }
  const inProse = IN_PROSE.exec(text)?.[1] ?? (NUMBER.test(text.trim()) ? text : undefined);
  if (inProse !== undefined) return { ...read(inProse, "prose"), ...withReason };
  return { ...unread(isRefusal(text) ? "the model declined to answer" : "no confidence in the output"), ...withReason };
}

const unread = (parseFailure: string) => ({ confidence: null, parsePath: "none" as const, parseFailure });

const NUMBER =
  /^\W*?(-?[0-9]+(?:\.[0-9]+)?)\s*(%|(?:\/|out of)\s*([0-9]+))?(?![0-9]|\.[0-9]|\s*(?:[-–—]|to)\s*[0-9])/iu;

/**
 * `85`, `85%`, `85/100`, `8/10` and `0.85` are read. A bare 1 is not: it is one of a hundred to one model and certainty to
 * another that answers in fractions.
 */
function read(raw: string, parsePath: ParsePath): ParsedConfidence {
  const match = NUMBER.exec(raw);
  if (match === null) return unread("the confidence is not a number");
  const [, number = "", unit, of] = match;
  const value = Number(number);
  const scale = of !== undefined ? Number(of) : unit === undefined && number.includes(".") && value <= 1 ? 1 : 100;
  if (unit === undefined && number === "1") return unread("a confidence of 1 may mean 1% or certainty");
  if (!(scale > 0) || value < 0 || value > scale) return unread("the confidence is outside its scale");
  return { confidence: value / scale, parsePath };
}
