import type { CallOptions, ChatResponse } from "./chat-model.ts";

/** Tells a listener an answer that did not stream, as one piece. */
export function emitWhole(response: ChatResponse, onDelta: CallOptions["onDelta"]): void {
  const { content, reasoning } = response;
  if (onDelta === undefined || (content === "" && reasoning === undefined)) return;
  onDelta({ ...(content === "" ? {} : { content }), ...(reasoning === undefined ? {} : { reasoning }) });
}
