/** What the gate reads from an output that passes it, or why it does not pass. */
export type TracerOutput =
  | { readonly ok: true; readonly think: string; readonly agent: string; readonly step: number }
  | { readonly ok: false; readonly reason: GateReason };

export type GateReason =
  | "not exactly one <think>…</think> followed by one <answer>…</answer>"
  | "answer is not one line"
  | "answer is not `agentID | stepID`"
  | "agent is empty"
  | "step is not a plain decimal number"
  | "step is too large";

// White space is ASCII on purpose: JavaScript's and Python's \s differ outside it, and both must give the same reward.
const ASCII_SPACE = " \t\r\n\f\v";
const TAG = /<\/?(?:think|answer)>/u;
const LINE_BREAK = /[\r\n\f\v\u0085\u2028\u2029]/u;
const SEPARATOR = " | ";

const rejected = (reason: GateReason): TracerOutput => ({ ok: false, reason });

/** Linear in the text, whatever it holds: outputs come from a policy that explores. */
function trim(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && ASCII_SPACE.includes(text.charAt(start))) start++;
  while (end > start && ASCII_SPACE.includes(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

/** The text between two tags that begin and end it, or undefined. */
function inside(text: string, open: string, close: string): string | undefined {
  if (!text.startsWith(open) || !text.endsWith(close) || text.length < open.length + close.length) return undefined;
  const body = text.slice(open.length, text.length - close.length);
  return TAG.test(body) ? undefined : body;
}

/** Both elements' contents, or undefined where the output is not exactly these two. */
function elements(text: string): { readonly think: string; readonly body: string } | undefined {
  const whole = trim(text);
  const end = whole.indexOf("</think>") + "</think>".length;
  const think = inside(whole.slice(0, end), "<think>", "</think>");
  const body = inside(trim(whole.slice(end)), "<answer>", "</answer>");
  return think === undefined || body === undefined ? undefined : { think, body };
}

/**
 * I_format (§4.2): the whole output must be `<think>…</think><answer>agentID | stepID</answer>`.
 *
 * White space may stand around the two elements and inside the answer; the reasoning may be empty. Each element occurs
 * once and nothing else is there. The answer is one line. The last ` | ` splits, for an agent's name may hold one.
 * The step is written in ASCII digits without sign or leading zero and is a safe integer (0-based).
 */
export function parseTracerOutput(text: string): TracerOutput {
  const parts = elements(text);
  if (parts === undefined) return rejected("not exactly one <think>…</think> followed by one <answer>…</answer>");
  const answer = trim(parts.body);
  if (LINE_BREAK.test(answer)) return rejected("answer is not one line");
  // Padded, so that a missing agent or step is told apart from a missing separator.
  const split = ` ${answer} `.lastIndexOf(SEPARATOR);
  if (split < 0) return rejected("answer is not `agentID | stepID`");
  const agent = trim(answer.slice(0, Math.max(0, split - 1)));
  const digits = trim(answer.slice(split + SEPARATOR.length - 1));
  if (agent === "") return rejected("agent is empty");
  if (!/^(?:0|[1-9][0-9]*)$/u.test(digits)) return rejected("step is not a plain decimal number");
  const step = Number(digits);
  if (!Number.isSafeInteger(step)) return rejected("step is too large");
  return { ok: true, think: parts.think, agent, step };
}
