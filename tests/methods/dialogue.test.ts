import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { RootstepError } from "../../src/errors.ts";
import { loadWhoAndWhen } from "../../src/evaluation/datasets.ts";
import { evaluate } from "../../src/evaluation/run.ts";
import { methodById } from "../../src/methods/registry.ts";
import { isContextOverflow, smallerBudget } from "../../src/methods/shared/context-overflow.ts";
import { openDialogue } from "../../src/methods/shared/dialogue.ts";
import { logPrompt } from "../../src/methods/shared/log-prompt.ts";
import { promptTemplate } from "../../src/methods/shared/prompt-template.ts";
import { methodView } from "../../src/methods/view.ts";
import type { ChatRequest, ChatResponse } from "../../src/models/chat-model.ts";
import { openAICompatible } from "../../src/models/openai-compatible.ts";
import { scriptedModel } from "../../src/models/scripted.ts";
import { run } from "../evaluation/items.ts";
import { type LoopbackServer, startServer } from "../models/loopback.ts";
import { captureModel } from "./capture-model.ts";
import { plausibleAnswer } from "./plausible-model.ts";

const { trajectory } = run("r", ["Planner", "Coder", "Tester"], 1);
const steps = trajectory.steps.map((step) => ({ ...step, content: "x".repeat(4000) }));
const long = methodView({ ...trajectory, steps }, { withReference: false });
const template = promptTemplate("all-at-once");
const sampling = { temperature: 0, maxTokens: 100 };
const context = { seed: 1, epoch: 0 };
const schema = { name: "s", schema: { type: "object" } };
const question = { name: "q", prompt: (s: Parameters<typeof logPrompt>[2]) => logPrompt(template, long, s), schema };
const refused = (what: string) => new RootstepError("MODEL_REFUSED_REQUEST", { what, where: "http://127.0.0.1/v1" });
const answer: Partial<ChatResponse> = { content: "ok", usage: { promptTokens: 7, completionTokens: 3 } };

/** Characters of log that a request carries. */
const logOf = (request: ChatRequest): string =>
  /from step 0 to step \d+:\n\n(.*)\n\nDecide/su.exec(request.messages[1]!.content)![1]!;

describe("context overflow", () => {
  // Messages as these servers write them.
  const messages: [string, string, boolean][] = [
    [
      "vLLM",
      "HTTP 400: This model's maximum context length is 8192 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.",
      true,
    ],
    [
      "vLLM, newer",
      "HTTP 400: The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
      true,
    ],
    [
      "vLLM 0.32",
      "HTTP 400: This model's maximum context length is 1024 tokens. However, your prompt contains at least 1025 input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=1025)",
      true,
    ],
    [
      "vLLM 0.32 about a completion that no context of its holds",
      "HTTP 400: max_tokens=2000 cannot be greater than max_model_len=1024. Please request fewer output tokens. (parameter=max_tokens, value=2000)",
      false,
    ],
    ["OpenAI", "HTTP 400: Your input exceeds the context window of this model.", true],
    [
      "llama.cpp",
      "HTTP 400: request (80000 tokens) exceeds the available context size (8192 tokens), try increasing it",
      true,
    ],
    ["llama-cpp-python", "HTTP 400: Requested tokens (2285) exceed context window of 2048", true],
    [
      "TGI",
      "HTTP 422: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`",
      true,
    ],
    ["SGLang", "HTTP 400: The input (9000 tokens) is longer than the model's context length (8192 tokens).", true],
    ["Anthropic", "HTTP 400: prompt is too long: 210000 tokens > 200000 maximum", true],
    ["another refusal", "HTTP 400: Unknown parameter: response_format", false],
    ["another model", "HTTP 404: The model `x` does not exist", false],
  ];
  it.each(messages)("is told from the message of %s", (_server, what, expected) => {
    expect(isContextOverflow(refused(what))).toBe(expected);
    expect(isContextOverflow(new RootstepError("MODEL_SERVER_ERROR", { what }))).toBe(false);
  });

  it("halves the budget, or shrinks it to what the server says it holds", () => {
    const prompt = logPrompt(template, long, { form: "text", logBudget: undefined });
    expect(smallerBudget(prompt, refused("context length exceeded"), 100)).toBe(Math.floor(prompt.logCharacters / 2));
    const told = refused("maximum context length is 1100 tokens. However, you requested 10000 tokens");
    const budget = smallerBudget(prompt, told, 100);
    const total = prompt.messages.reduce((n, m) => n + m.content.length, 0);
    // A tenth of the characters may go for a tenth of the tokens, less the margin and the text around the log.
    expect(budget).toBe(Math.floor((total / 10) * 0.9 - (total - prompt.logCharacters)));
    // A server that stops counting at its limit: four characters a token stand in for the count.
    const bound = refused(
      "maximum context length is 1100 tokens. However, your prompt contains at least 1101 input tokens",
    );
    expect(smallerBudget(prompt, bound, 100)).toBe(Math.floor(4 * 1000 * 0.9 - (total - prompt.logCharacters)));
    expect(smallerBudget(prompt, refused("maximum context length is 50 tokens"), 100)).toBeGreaterThan(0);
  });

  it("asks again with half the log, records it, and keeps the smaller budget", async () => {
    const model = scriptedModel([
      refused("the prompt exceeds the context window"),
      refused("the prompt exceeds the context window"),
      answer,
      answer,
    ]);
    const dialogue = openDialogue("m", sampling, { ...context, model });
    await dialogue.ask(question);
    await dialogue.ask(question);
    const lengths = model.requests.map(({ request }) => logOf(request).length);
    expect(lengths[1]).toBeLessThanOrEqual(lengths[0]! / 2);
    expect(lengths[2]).toBeLessThanOrEqual(lengths[1]! / 2);
    expect(lengths[3]).toBe(lengths[2]);
    const { evidence, cut, calls, usage } = dialogue.totals();
    expect(evidence.map(({ text }) => text)).toEqual([
      expect.stringMatching(
        /^q: the server refused 12\d\d\d characters of log as too long \(.*context window\); cut to 6\d\d\d$/,
      ),
      expect.stringMatching(
        /^q: the server refused [56]\d\d\d characters of log as too long \(.*context window\); cut to [23]\d\d\d$/,
      ),
    ]);
    expect(cut).toMatchObject({ stepsCut: 3, overBudget: false });
    expect(cut!.charactersTotal - cut!.charactersCut).toBeLessThan(12_000 / 4 + 200);
    expect({ calls, usage }).toEqual({ calls: 2, usage: { promptTokens: 14, completionTokens: 6 } });
  });

  it("lets the error stand after three halvings, and says what was tried", async () => {
    const model = captureModel(() => Promise.reject(refused("context length exceeded")));
    const dialogue = openDialogue("m", sampling, { ...context, model });
    await expect(dialogue.ask(question)).rejects.toMatchObject({
      code: "MODEL_REFUSED_REQUEST",
      what: expect.stringMatching(/^context length exceeded; the log had been cut 3 times, to 1\d\d\d characters$/),
      hint: expect.stringContaining("logBudget"),
      where: "http://127.0.0.1/v1",
    });
    expect(model.requests).toHaveLength(4);
  });

  it("touches no other failure", async () => {
    for (const error of [new RootstepError("MODEL_TIMEOUT", { what: "context length" }), refused("no such model")]) {
      const model = captureModel(() => Promise.reject(error));
      await expect(openDialogue("m", sampling, { ...context, model }).ask(question)).rejects.toBe(error);
      expect(model.requests).toHaveLength(1);
    }
  });
});

describe("structured output", () => {
  const auto = { ...sampling, structured: "auto" as const };

  it("is sent where asked for, and the prompt asks for JSON then", async () => {
    const model = captureModel(() => answer);
    await openDialogue("m", auto, { ...context, model }).ask(question);
    await openDialogue("m", { ...sampling, structured: "never" }, { ...context, model }).ask(question);
    const [json, text] = model.requests.map(({ request }) => request);
    expect(json!.responseFormat).toEqual({ type: "json_schema", ...schema });
    expect(json!.messages[1]!.content).toContain("JSON object");
    expect(text!.responseFormat).toBeUndefined();
    expect(text!.messages[1]!.content).not.toContain("JSON object");
  });

  it("gives way to text where the server refuses it, once for all questions, and says so", async () => {
    const model = captureModel(({ responseFormat }) =>
      responseFormat === undefined ? answer : Promise.reject(refused("response_format is not supported")),
    );
    const dialogue = openDialogue("m", auto, { ...context, model });
    await dialogue.ask(question);
    await dialogue.ask(question);
    expect(model.requests.map(({ request }) => request.responseFormat?.type)).toEqual([
      "json_schema",
      undefined,
      undefined,
    ]);
    expect(dialogue.totals()).toMatchObject({
      calls: 2,
      evidence: [
        { text: "q: the server refused structured output (response_format is not supported); asked again for text" },
      ],
    });
  });

  it("does not hide a refusal that has another reason", async () => {
    const error = refused("The model `x` does not exist");
    const model = captureModel(() => Promise.reject(error));
    await expect(openDialogue("m", auto, { ...context, model }).ask(question)).rejects.toBe(error);
    expect(model.requests).toHaveLength(2);
  });
});

describe("totals", () => {
  it("have no usage where one call has none", async () => {
    const model = scriptedModel([answer, "no usage", answer]);
    const dialogue = openDialogue("m", sampling, { ...context, model });
    for (let i = 0; i < 3; i++) await dialogue.ask(question);
    expect(dialogue.totals().usage).toBeUndefined();
    expect(dialogue.totals()).toMatchObject({ calls: 3, rawOutput: "[q]\nok\n\n[q]\nno usage\n\n[q]\nok\n" });
  });

  it("keep how an output ended", async () => {
    const model = scriptedModel([{ content: "Agent", finishReason: "length" }, { finishReason: "content_filter" }]);
    const dialogue = openDialogue("m", sampling, { ...context, model });
    await dialogue.ask(question);
    await dialogue.ask(question);
    expect(dialogue.totals().evidence.map(({ text }) => text)).toEqual([
      "q: the output reached its token limit (finish reason length)",
      "q: the server's content filter ended the output (finish reason content_filter)",
    ]);
  });

  it.each(["all-at-once", "a2p", "tracer", "hybrid", "step-by-step"])(
    "%s says why a withheld or cut answer is none",
    async (id) => {
      const ask = async (response: Partial<ChatResponse>) => {
        const model = captureModel(() => response);
        return methodById(id)
          .configure()
          .attribute(methodView(trajectory, { withReference: false }), { ...context, model });
      };
      const withheld = JSON.stringify(await ask({ content: "", finishReason: "content_filter" }));
      expect(withheld).toContain("the server's content filter withheld the answer");
      const cut = JSON.stringify(await ask({ content: "<think>so far", finishReason: "length" }));
      expect(cut).toContain("(the output reached its token limit)");
      expect(cut).toContain("finish reason length");
    },
  );
});

describe("a server with a small context", () => {
  let server: LoopbackServer;
  const CONTEXT = 8192;
  const body = z.object({
    max_tokens: z.number(),
    messages: z.array(z.object({ role: z.enum(["system", "user"]), content: z.string() })),
  });

  beforeAll(async () => {
    // Counts three characters as a token and refuses in the words of vLLM: before 0.32 with the count, since then with a bound.
    server = await startServer((request, response) => {
      const { messages, max_tokens: completion } = body.parse(JSON.parse(request.body));
      const prompt = Math.ceil(messages.reduce((n, m) => n + m.content.length, 0) / 3);
      const counting = request.url.startsWith("/counting/");
      const fits = prompt + completion <= CONTEXT;
      const message = counting
        ? `This model's maximum context length is ${CONTEXT} tokens. However, you requested ${prompt + completion} tokens (${prompt} in the messages, ${completion} in the completion). Please reduce the length of the messages or completion.`
        : `This model's maximum context length is ${CONTEXT} tokens. However, your prompt contains at least ${CONTEXT + 1} input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=${CONTEXT + 1})`;
      const content = fits
        ? plausibleAnswer({ messages }, { decisive: (step) => step > 2, confidence: 90, blame: 1 }, 0)
        : "";
      response.writeHead(fits ? 200 : 400, { "content-type": "application/json" });
      response.end(
        JSON.stringify(
          fits
            ? {
                model: "m",
                choices: [{ message: { content }, finish_reason: "stop" }],
                usage: { prompt_tokens: prompt, completion_tokens: 9 },
              }
            : { error: { message, type: "BadRequestError", code: 400 } },
        ),
      );
    });
  });
  afterAll(() => server.close());

  const methods = ["all-at-once", "step-by-step", "binary-search", "hybrid", "a2p", "raffles"];
  it.each(methods.flatMap((id) => ["counting", "bounding"].map((server) => [id, server] as const)))(
    "%s answers about the longest log, with what was cut on record (a %s server)",
    async (id, kind) => {
      const { items } = await loadWhoAndWhen({ subset: "hand-crafted" });
      const size = ({ trajectory: { steps: all } }: (typeof items)[number]) =>
        all.reduce((n, s) => n + s.content.length, 0);
      const longest = [...items].sort((a, b) => size(b) - size(a))[0]!;
      expect(size(longest)).toBeGreaterThan(290_000);
      const model = openAICompatible({ baseUrl: `${server.url}/${kind}/v1`, model: "m", stream: false });
      const { predictions } = await evaluate({
        items: [longest],
        method: methodById(id).configure({ maxTokens: 1024, structured: "never" }),
        withReference: true,
        context: { model, seed: 1 },
      });
      const [prediction] = predictions;
      expect(prediction!.error).toBeUndefined();
      expect(prediction!.step).not.toBeNull();
      expect(prediction!.usage).toBeDefined();
      // The log up to step 3 fits; everything that sees all of it is cut.
      if (id !== "step-by-step") {
        expect(prediction!.cut!.charactersCut).toBeGreaterThan(200_000);
        expect(prediction!.evidence.some(({ text }) => /maximum context length .* cut to \d+$/u.test(text))).toBe(true);
      }
    },
  );
});
