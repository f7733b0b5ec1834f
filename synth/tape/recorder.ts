import type { ChatModel } from "../../src/models/chat-model.ts";
import { TAPE_VERSION, type Tape, type TapedCall, UNNAMED_LANE } from "./tape.ts";

/** The in-process front of a new tape: hand `model` to a system, read `tape()` when it is done. */
export function createRecorder(live: ChatModel): { readonly model: ChatModel; tape(): Tape } {
  const calls: TapedCall[] = [];
  let begun = 0;
  return {
    model: {
      id: live.id,
      async complete(request, options) {
        const index = begun++; // the order in which they were asked, not answered
        const response = await live.complete(request, options);
        calls[index] = { index, lane: options?.agent ?? UNNAMED_LANE, request, response };
        return response;
      },
    },
    tape: () => ({ version: TAPE_VERSION, calls: calls.filter((call) => call !== undefined) }),
  };
}
