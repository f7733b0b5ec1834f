import { RootstepError } from "../errors.ts";
import type { CallOptions, ChatResponse, ChatToolCall } from "./chat-model.ts";
import { fromWireFinish, toolCallId, type WireChunk, type WireToolCall } from "./wire.ts";

/** Puts the pieces of a streamed completion together. */
export interface StreamAssembly {
  add(chunk: WireChunk): void;
  /**
   * The whole answer.
   * @param sawDone whether the stream's own end mark (`[DONE]`) came
   * @throws RootstepError MODEL_STREAM_CUT where neither that nor a finish reason came
   */
  finish(sawDone: boolean): ChatResponse;
}

interface PartialToolCall {
  id: string | undefined;
  name: string;
  arguments: string;
}

/** @param requestedModel stands in where the server names no model */
export function streamAssembly(
  requestedModel: string,
  where: string,
  onDelta?: CallOptions["onDelta"],
): StreamAssembly {
  let content = "";
  let reasoning = "";
  let finish: string | undefined;
  let usage: ChatResponse["usage"];
  let model = requestedModel;
  const calls = new Map<number, PartialToolCall>();

  return {
    add(chunk) {
      if (chunk.model) model = chunk.model;
      // The usage comes in a last chunk without choices, or (continuous usage) in each: the last one counts.
      usage = chunk.usage ?? usage;
      const choice = chunk.choices?.find((candidate) => (candidate.index ?? 0) === 0);
      if (choice === undefined) return;
      if (choice.finish_reason) finish = choice.finish_reason;
      const delta = choice.delta;
      if (delta === undefined || delta === null) return;
      content += delta.content;
      reasoning += delta.reasoning;
      for (const piece of delta.toolCalls) addToolCall(calls, piece);
      if (onDelta !== undefined && (delta.content !== "" || delta.reasoning !== "")) {
        onDelta({
          ...(delta.content === "" ? {} : { content: delta.content }),
          ...(delta.reasoning === "" ? {} : { reasoning: delta.reasoning }),
        });
      }
    },
    finish(sawDone) {
      if (finish === undefined && !sawDone) {
        throw new RootstepError("MODEL_STREAM_CUT", {
          what: `The model server's stream ended without a finish reason or [DONE], after ${content.length} characters`,
          where,
        });
      }
      return {
        content,
        ...(reasoning === "" ? {} : { reasoning }),
        toolCalls: [...calls.entries()]
          .sort(([a], [b]) => a - b)
          .map(([, call], position): ChatToolCall => ({ ...call, id: toolCallId(call.id, position) })),
        finishReason: fromWireFinish(finish),
        ...(usage === undefined ? {} : { usage }),
        model,
      };
    },
  };
}

/** A piece belongs to the call of its index; without an index, an id begins a new call and no id goes on with the last. */
function addToolCall(calls: Map<number, PartialToolCall>, piece: WireToolCall): void {
  const last = Math.max(-1, ...calls.keys());
  const index = piece.index ?? (piece.id || last < 0 ? last + 1 : last);
  const call = calls.get(index) ?? { id: undefined, name: "", arguments: "" };
  if (piece.id) call.id = piece.id;
  // A name comes whole; servers that repeat it in every piece would otherwise double it.
  if (piece.function?.name) call.name = piece.function.name;
  call.arguments += piece.function?.arguments ?? "";
  calls.set(index, call);
}
