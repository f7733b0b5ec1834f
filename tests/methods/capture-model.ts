import type { CallOptions, ChatModel, ChatRequest, ChatResponse } from "../../src/models/chat-model.ts";

/** A chat model that answers as told and keeps every request. */
export function captureModel(
  answer: (request: ChatRequest, options?: CallOptions) => Partial<ChatResponse> | Promise<Partial<ChatResponse>>,
): ChatModel & { readonly requests: { request: ChatRequest; options: CallOptions | undefined }[] } {
  const requests: { request: ChatRequest; options: CallOptions | undefined }[] = [];
  return {
    id: "capture",
    requests,
    complete: async (request, options) => {
      requests.push({ request, options });
      return {
        content: "",
        toolCalls: [],
        finishReason: "stop",
        model: "capture",
        ...(await answer(request, options)),
      };
    },
  };
}
