import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { evaluate } from "../../src/evaluation/run.ts";
import { scorePredictions } from "../../src/evaluation/score.ts";
import { methodById } from "../../src/methods/registry.ts";
import { openAICompatible } from "../../src/models/openai-compatible.ts";
import { type LoopbackServer, startServer } from "../models/loopback.ts";
import { run } from "./items.ts";

const ANSWER = "Agent Name: Coder\nStep Number: 1\nReason: wrong file";
const whole = (message: object, finish_reason = "stop") => ({
  status: 200,
  body: { model: "m", choices: [{ message, finish_reason }], usage: { prompt_tokens: 9, completion_tokens: 3 } },
});

/** What servers send in place of a plain answer, by the log that is asked about. */
const CASES: Record<string, { readonly status: number; readonly body: object }> = {
  // https://platform.openai.com/docs/guides/structured-outputs: refusals
  refusal: whole({ content: null, refusal: "I'm sorry, I cannot assist with that request." }),
  prose: whole({ content: "I am unable to say which agent failed." }),
  "filtered-output": whole({ content: null }, "content_filter"),
  "filtered-half": whole({ content: "Agent Name: Cod" }, "content_filter"),
  // https://learn.microsoft.com/azure/ai-services/openai/concepts/content-filter
  "filtered-prompt": {
    status: 400,
    body: {
      error: {
        message: "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        code: "content_filter",
        status: 400,
      },
    },
  },
  "reasoning-apart": whole({ content: ANSWER, reasoning_content: "Agent Name: Planner\nStep Number: 0" }),
  "reasoning-vllm": whole({ content: ANSWER, reasoning: "Agent Name: Planner\nStep Number: 0" }),
  "reasoning-inside": whole({ content: `<think>Agent Name: Planner\nStep Number: 0</think>${ANSWER}` }),
  "reasoning-only": whole({ content: null, reasoning_content: "Agent Name: Planner\nStep Number: 0" }, "length"),
};

describe("what a server sends in place of an answer", () => {
  let server: LoopbackServer;
  beforeAll(async () => {
    server = await startServer((request, response) => {
      const [, name = ""] = /What is (\S+)\?/u.exec(request.body) ?? [];
      const { status, body } = CASES[name] ?? { status: 500, body: {} };
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    });
  });
  afterAll(() => server.close());

  it("is recorded for what it is, counted as wrong, and stops no other log", async () => {
    const items = Object.keys(CASES).map((name) => {
      const item = run(name, ["Planner", "Coder"], 1);
      return {
        ...item,
        trajectory: { ...item.trajectory, task: { ...item.trajectory.task, text: `What is ${name}?` } },
      };
    });
    const { predictions, stoppedBy } = await evaluate({
      items,
      method: methodById("all-at-once").configure(),
      withReference: false,
      context: { model: openAICompatible({ baseUrl: `${server.url}/v1`, model: "m", stream: false }), seed: 1 },
    });
    expect(stoppedBy).toBeUndefined();
    const said = predictions.map(({ itemId, step, parseFailure, error }) => [
      itemId,
      step ?? parseFailure ?? error?.code,
    ]);
    expect(Object.fromEntries(said)).toEqual({
      refusal: "the model declined to answer",
      prose: "the model declined to answer",
      "filtered-output": "the server's content filter withheld the answer",
      "filtered-half": "the server's content filter withheld the answer",
      "filtered-prompt": "MODEL_REFUSED_REQUEST",
      "reasoning-apart": 1,
      "reasoning-vllm": 1,
      "reasoning-inside": 1,
      "reasoning-only": "empty output (the output reached its token limit)",
    });
    expect(predictions.find(({ itemId }) => itemId === "filtered-prompt")?.error?.message).toContain("filtered");
    const scores = scorePredictions(items, predictions);
    expect(scores.strict.step).toMatchObject({ hits: 3, n: 9 });
    expect(scores.parseFailures).toMatchObject({ hits: 5, n: 9 });
    expect(scores.errors).toEqual({ MODEL_REFUSED_REQUEST: 1 });
  });
});
