import type { ChatResponse } from "../../models/chat-model.ts";

/** The part of an output that is the answer, or why there is none. */
export type AnswerText = { readonly text: string } | { readonly failure: string };

/** The output without its `<think>` block. Servers and models differ in whether the opening tag is there. */
export function answerText(output: string): AnswerText {
  const thinkEnd = output.lastIndexOf("</think>");
  if (thinkEnd < 0 && output.includes("<think>")) return { failure: "the output ends inside its reasoning" };
  const text = thinkEnd < 0 ? output : output.slice(thinkEnd + "</think>".length);
  return text.trim() === "" ? { failure: "empty output" } : { text };
}

const REFUSAL =
  /\b(?:cannot|can't|can not|could not|unable to|not able to|impossible to|no (?:clear|single|decisive) error)\b|^\s*(?:sorry|i'm sorry|i am sorry|i apologi[sz]e)/iu;

/** True for an output that holds no answer because the model would not give one. */
export function isRefusal(text: string): boolean {
  return REFUSAL.test(text);
}

/** The body of the last `<answer>…</answer>`. */
export function lastAnswerTag(text: string): string | undefined {
  const close = text.lastIndexOf("</answer>");
  const open = text.lastIndexOf("<answer>", close);
  return close < 0 || open < 0 ? undefined : text.slice(open + "<answer>".length, close);
}

/** Why nothing could be read, with what the server said about the end of the output. */
export function explainFailure(parseFailure: string, finishReason: ChatResponse["finishReason"]): string {
  if (finishReason === "content_filter") return "the server's content filter withheld the answer";
  return finishReason === "length" ? `${parseFailure} (the output reached its token limit)` : parseFailure;
}

/** A parse result with `explainFailure` applied to its failure, if it has one. */
export function explained<Parsed extends { readonly parseFailure?: string }>(
  parsed: Parsed,
  finishReason: ChatResponse["finishReason"],
): Parsed {
  if (parsed.parseFailure === undefined) return parsed;
  return { ...parsed, parseFailure: explainFailure(parsed.parseFailure, finishReason) };
}
