import { RootstepError } from "../errors.ts";
import type { CallOptions, ChatResponse } from "./chat-model.ts";
import { emitWhole } from "./emit-whole.ts";
import { plainCompletion } from "./plain-completion.ts";
import { type CallPlace, quote, reportedError } from "./server-failures.ts";
import { eventData } from "./server-sent-events.ts";
import { streamAssembly } from "./stream-assembly.ts";
import { fromWireCompletion, parseWire, wireChunkSchema } from "./wire.ts";

/** A completion that came as one JSON value. @throws RootstepError what the value reports, or MODEL_WRONG_SHAPE */
export function readCompletion(
  value: unknown,
  model: string,
  place: CallPlace,
  onDelta?: CallOptions["onDelta"],
): ChatResponse {
  const reported = reportedError(value, place);
  if (reported !== undefined) throw reported;
  const response = plainCompletion(value, model) ?? fromWireCompletion(value, model, place.where);
  emitWhole(response, onDelta);
  return response;
}

/**
 * A completion that comes as server-sent events; stops reading at `[DONE]`.
 * @throws RootstepError MODEL_STREAM_CUT, MODEL_BAD_BODY, MODEL_WRONG_SHAPE, or what an event reports
 */
export async function readCompletionStream(
  chunks: AsyncIterable<Uint8Array>,
  model: string,
  place: CallPlace,
  onDelta?: CallOptions["onDelta"],
): Promise<ChatResponse> {
  const assembly = streamAssembly(model, place.where, onDelta);
  for await (const data of eventData(chunks, place.where)) {
    if (data.trim() === "[DONE]") return assembly.finish(true);
    if (data.trim() === "") continue;
    const value = parseEvent(data, place);
    const reported = reportedError(value, place);
    if (reported !== undefined) throw reported;
    assembly.add(parseWire(wireChunkSchema, value, place.where));
  }
  return assembly.finish(false);
}

function parseEvent(data: string, place: CallPlace): unknown {
  try {
    return JSON.parse(data);
  } catch {
    throw new RootstepError("MODEL_BAD_BODY", {
      what: `The model server streamed an event that is not JSON: "${quote(data, place.secrets)}"`,
      where: place.where,
    });
  }
}
