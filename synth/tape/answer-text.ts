/** What an answer says, whatever its endpoint and whether it was streamed. */
export interface AnswerSummary {
  readonly text: string;
  readonly toolCalls: readonly AnsweredToolCall[];
  readonly model: string | undefined;
  readonly promptTokens: number | undefined;
  readonly completionTokens: number | undefined;
  /** The message of an error answer. */
  readonly error: string | undefined;
}

/** A tool call as the model wrote it. */
export interface AnsweredToolCall {
  /** Empty where the answer gives none. */
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** Reads a recorded body leniently: for people to look at, never to decide by. */
export function summarizeAnswer(body: string): AnswerSummary {
  const whole = parsed(body);
  const values = whole === undefined ? eventsOf(body) : [whole];
  const calls = new Map<string, AnsweredToolCall>();
  let [text, final] = ["", ""];
  let [model, error]: (string | undefined)[] = [];
  let [prompt, completion]: (number | undefined)[] = [];
  for (const value of values) {
    const answer = record(value.response) ?? value; // events of Responses carry the answer inside
    model = string(answer.model) ?? model;
    const usage = record(answer.usage);
    prompt = number(usage?.prompt_tokens) ?? number(usage?.input_tokens) ?? prompt;
    completion = number(usage?.completion_tokens) ?? number(usage?.output_tokens) ?? completion;
    error = string(record(answer.error)?.message) ?? string(answer.error) ?? error;
    for (const choice of list(answer.choices)) {
      const message = record(choice.message) ?? record(choice.delta);
      text += string(message?.content) ?? string(choice.text) ?? "";
      for (const [position, call] of list(message?.tool_calls).entries()) {
        addCall(
          calls,
          `${String(choice.index ?? 0)} ${String(call.index ?? position)}`,
          call.id,
          record(call.function),
        );
      }
    }
    if (value.type === "response.output_text.delta") text += string(value.delta) ?? "";
    for (const item of list(answer.output)) {
      const id = item.call_id ?? item.id;
      // An item comes whole, and in a stream maybe in more than one event.
      if (item.type === "function_call" && calls.get(String(id))?.arguments !== item.arguments) {
        addCall(calls, String(id), id, item);
      }
      final += list(item.content)
        .map((part) => string(part.text) ?? "")
        .join("");
    }
  }
  return {
    text: text === "" ? final : text,
    toolCalls: [...calls.values()],
    model,
    promptTokens: prompt,
    completionTokens: completion,
    error,
  };
}

type Json = Readonly<Record<string, unknown>>;

/** Adds a piece: a stream names a call in its first, and tells its arguments in all. */
function addCall(calls: Map<string, AnsweredToolCall>, key: string, id: unknown, call: Json | undefined): void {
  const known = calls.get(key);
  calls.set(key, {
    id: string(id) ?? known?.id ?? "",
    name: string(call?.name) || (known?.name ?? ""),
    arguments: `${known?.arguments ?? ""}${string(call?.arguments) ?? ""}`,
  });
}

function eventsOf(body: string): Json[] {
  return [...body.matchAll(/^data: ?(\{.*)$/gmu)].flatMap(([, data]) => present(parsed(data ?? "")));
}

function parsed(text: string): Json | undefined {
  try {
    return record(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function record(value: unknown): Json | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

const list = (value: unknown): readonly Json[] =>
  Array.isArray(value) ? value.flatMap((item: unknown) => present(record(item))) : [];
const present = (value: Json | undefined): Json[] => (value === undefined ? [] : [value]);
const string = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);
