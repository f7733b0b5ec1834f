import type { Action } from "../../../synth/proxy/action.ts";
import type { StoredCall } from "../../../synth/tape/folder-schema.ts";
import type { TapeFolder } from "../../../synth/tape/loader.ts";

/** The result that the corrected answer states; no other call has it. */
export const CORRECTED = "77771";

const SOLUTION = /(-?\d+(?:\.\d+)? [-+*/] -?\d+(?:\.\d+)? = )-?\d+(?:\.\d+)?/gu;

/**
 * Call N in the middle of a run and what it is to answer: its recorded answer with another result. The solution may stand
 * in text, in code, in the arguments of a tool call or in JSON: it is replaced wherever it is.
 */
export function correctionOf(
  calls: readonly StoredCall[],
  tape: TapeFolder,
  own: ((recorded: string) => Action) | undefined,
): { readonly at: number; readonly action: Action } {
  const answers = calls.map(({ response }) => tape.bodies.get(response.body).toString("utf8"));
  const solutions = answers.flatMap((answer, index) => (stated(answer).search(SOLUTION) >= 0 ? [index] : []));
  const at = solutions.find((index) => index >= calls.length / 3) ?? solutions.at(-1);
  if (at === undefined) throw new Error("no call of the run states a solution");
  const recorded = answers[at]!;
  if (own !== undefined) return { at, action: own(recorded) };
  if (recorded.startsWith("{")) {
    const value: unknown = JSON.parse(recorded);
    return { at, action: { kind: "answer", value: replaced(value) as Record<string, unknown> } };
  }
  return { at, action: { kind: "text", text: replaced(stated(recorded)) as string } };
}

/** What an answer says: of a stream, its text put together. */
function stated(answer: string): string {
  if (!answer.includes("data:")) return answer;
  const events = [...answer.matchAll(/^data: ?(\{.*)$/gmu)].map(([, data]) => JSON.parse(data!));
  return events
    .map((event) => event.choices?.[0]?.delta?.content ?? (typeof event.delta === "string" ? event.delta : ""))
    .join("");
}

function replaced(value: unknown): unknown {
  if (typeof value === "string") return value.replace(SOLUTION, `$1${CORRECTED}`);
  if (Array.isArray(value)) return value.map(replaced);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, replaced(inner)]));
}
