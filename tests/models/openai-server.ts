import type { ServerResponse } from "node:http";
import { type LoopbackServer, type SeenRequest, startServer } from "./loopback.ts";
import { type Scenario, scenarioOf } from "./scenarios.ts";

/** A server that answers `POST …/chat/completions` as OpenAI's API reference says, streamed or whole. */
export function startOpenAIServer(): Promise<LoopbackServer> {
  return startServer((request, response) => {
    if (request.method !== "POST" || !/\/v1\/chat\/completions(\?|$)/.test(request.url)) {
      response.writeHead(404, { "content-type": "application/json" });
      response.end(
        JSON.stringify({ error: { message: `no route ${request.method} ${request.url}`, type: "not_found" } }),
      );
      return;
    }
    const body = JSON.parse(request.body);
    const scenario = scenarioOf(body.messages.at(-1).content);
    if (scenario === "hang") return;
    if (body.stream) stream(scenario, body.stream_options?.include_usage === true, response);
    else whole(scenario, request, response);
  });
}

const envelope = { id: "chatcmpl-7", created: 1_700_000_000 };

function wireUsage({ usage }: Scenario["response"]) {
  if (usage === undefined) return undefined;
  const { promptTokens, completionTokens } = usage;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

function whole({ response: answer }: Scenario, _request: SeenRequest, response: ServerResponse): void {
  const calls = answer.toolCalls.map((call) => ({
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: call.arguments },
  }));
  response.writeHead(200, { "content-type": "application/json; charset=utf-8" });
  response.end(
    JSON.stringify({
      ...envelope,
      object: "chat.completion",
      model: answer.model,
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: answer.content === "" ? null : answer.content,
            ...(answer.reasoning === undefined ? {} : { reasoning_content: answer.reasoning }),
            ...(calls.length === 0 ? {} : { tool_calls: calls }),
          },
          finish_reason: answer.finishReason,
        },
      ],
      usage: wireUsage(answer),
    }),
  );
}

/** Cuts a text into pieces of two characters. */
const pieces = (text: string): string[] => {
  const characters = [...text];
  return characters.flatMap((c, i) => (i % 2 === 0 ? [c + (characters[i + 1] ?? "")] : []));
};

/** The server-sent events of a scenario's answer, one string each. */
export function eventsOf({ response: answer }: Scenario, includeUsage: boolean): string[] {
  const chunk = (choices: unknown[], more: object = {}) =>
    `data: ${JSON.stringify({ ...envelope, object: "chat.completion.chunk", model: answer.model, choices, ...more })}\n\n`;
  const delta = (value: object) => chunk([{ index: 0, delta: value, finish_reason: null }]);
  const usage = wireUsage(answer);
  return [
    delta({ role: "assistant", content: "" }),
    ...pieces(answer.reasoning ?? "").map((piece) => delta({ reasoning_content: piece })),
    ...pieces(answer.content).map((piece) => delta({ content: piece })),
    ...answer.toolCalls.flatMap((call, index) => [
      delta({ tool_calls: [{ index, id: call.id, type: "function", function: { name: call.name, arguments: "" } }] }),
      ...pieces(call.arguments).map((piece) => delta({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]),
    chunk([{ index: 0, delta: {}, finish_reason: answer.finishReason }]),
    ...(includeUsage && usage !== undefined ? [chunk([], { usage })] : []),
    "data: [DONE]\n\n",
  ];
}

function stream(scenario: Scenario, includeUsage: boolean, response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  for (const event of eventsOf(scenario, includeUsage)) response.write(event);
  response.end();
}
