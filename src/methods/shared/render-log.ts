import type { LogCut } from "../method.ts";
import type { MethodView, ViewStep } from "../view.ts";

/** Share of a cut step's room that its head gets: what was asked stands first, the result last. */
const HEAD_SHARE = 0.6;

/** Everything a step says, tool calls and retrieved passages included. */
export function stepText(step: ViewStep): string {
  const parts = [step.content];
  for (const passage of step.retrieved) parts.push(`[retrieved ${passage.id}] ${passage.text}`);
  for (const call of step.toolCalls) {
    parts.push(`[tool call] ${call.name}(${call.arguments})`);
    if (call.result !== undefined) parts.push(`[tool result] ${call.result}`);
    if (call.error !== undefined) parts.push(`[tool error] ${call.error}`);
  }
  return parts.filter((part) => part !== "").join("\n");
}

/** `Step 0 · Agent: Name`: the line above every step, in every prompt. Indexes are 0-based. */
export function stepHeader(step: Pick<ViewStep, "index" | "agent">): string {
  return `Step ${step.index} · Agent: ${step.agent}`;
}

/**
 * The log as text, step by step. With a budget (characters) every step keeps its header; long steps keep head and tail
 * around a note of how much was left out, the longest giving way first.
 */
export function renderLog(view: MethodView, budget = Number.POSITIVE_INFINITY): { text: string; cut?: LogCut } {
  const texts = view.steps.map(stepText);
  const headers = view.steps.map(stepHeader);
  // Per step the header and the ends of two lines; an empty line between steps.
  const frame = Math.max(0, headers.reduce((total, header) => total + header.length + 3, 0) - 1);
  const charactersTotal = frame + texts.reduce((total, text) => total + text.length, 0);
  const assemble = (bodies: readonly string[]): string =>
    headers.map((header, i) => `${header}\n${bodies[i] ?? ""}\n`).join("\n");
  if (charactersTotal <= budget) return { text: assemble(texts) };

  const cap = evenCap(
    texts.map((text) => text.length),
    budget - frame,
  );
  const bodies = texts.map((text) => (text.length <= cap ? { text, lost: 0 } : headAndTail(text, cap)));
  const text = assemble(bodies.map((body) => body.text));
  const cut: LogCut = {
    stepsCut: bodies.filter((body) => body.lost > 0).length,
    charactersCut: bodies.reduce((total, body) => total + body.lost, 0),
    charactersTotal,
    overBudget: text.length > budget,
  };
  return { text, cut };
}

/** The largest cap with Σ min(length, cap) ≤ room: short steps stay whole, long ones share what is left. */
function evenCap(lengths: readonly number[], room: number): number {
  const ascending = [...lengths].sort((a, b) => a - b);
  let left = Math.max(0, room);
  for (const [i, length] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - i));
    if (length > share) return share;
    left -= length;
  }
  return Number.POSITIVE_INFINITY;
}

const cutNote = (characters: number): string => ` […${characters} characters cut…] `;

function headAndTail(text: string, cap: number): { readonly text: string; readonly lost: number } {
  const room = cap - cutNote(text.length).length;
  if (room <= 0) return { text: cutNote(text.length).trim(), lost: text.length };
  const headRoom = Math.round(room * HEAD_SHARE);
  const head = wholeCharacters(text.slice(0, headRoom));
  const tail = wholeCharacters(text.slice(text.length - (room - headRoom)));
  const lost = text.length - head.length - tail.length;
  return { text: head + cutNote(lost) + tail, lost };
}

/** Half a surrogate pair at either end would become a replacement character on the wire. */
function wholeCharacters(text: string): string {
  return text.replace(/^[\uDC00-\uDFFF]/, "").replace(/[\uD800-\uDBFF]$/, "");
}
