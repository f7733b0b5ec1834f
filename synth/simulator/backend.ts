import type { ChatModel, ChatRequest, ChatResponse } from "../../src/models/chat-model.ts";

/** What every endpoint of the simulator server asks: one model, with a seed for each request. */
export interface SimulatorBackend {
  readonly model: ChatModel;
  /** Answers a request; without a seed, the n-th identical one has seed n. @throws RootstepError SIMULATOR_CONFUSED */
  complete(request: ChatRequest): Promise<ChatResponse>;
  /** A new id for an answer, `sim-0`, `sim-1`, …: like a real server's, not the same in another run. */
  nextId(): string;
  /** Unix time in seconds. */
  created(): number;
}

export function simulatorBackend(model: ChatModel, now: () => Date): SimulatorBackend {
  const seen = new Map<string, number>();
  let served = 0;
  return {
    model,
    complete(request) {
      const key = JSON.stringify(request.messages);
      const occurrence = seen.get(key) ?? 0;
      seen.set(key, occurrence + 1);
      return model.complete({ ...request, seed: request.seed ?? occurrence });
    },
    nextId: () => `sim-${served++}`,
    created: () => Math.floor(now().getTime() / 1000),
  };
}

/** An error in OpenAI's form. */
export function refusal(message: string): unknown {
  return { error: { message, type: "invalid_request_error", code: null } };
}
