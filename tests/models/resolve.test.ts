import { inspect } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { createBudget } from "../../src/models/budget.ts";
import { memoryStore } from "../../src/models/cache-store.ts";
import { modelConfigSchema, modelFromConfig } from "../../src/models/resolve.ts";
import { everythingTo, startServer } from "./loopback.ts";
import { startOpenAIServer } from "./openai-server.ts";
import { SCENARIOS } from "./scenarios.ts";

const local = (more: object = {}) =>
  modelConfigSchema.parse({
    provider: "openai-compatible",
    baseUrl: "http://127.0.0.1:8000/v1",
    model: "Qwen3-8B",
    ...more,
  });
const hosted = (more: object = {}) =>
  modelConfigSchema.parse({ provider: "hugging-face", model: "Qwen/Qwen3-8B", ...more });
const ask = SCENARIOS.text.request;

describe("the id", () => {
  test("names client, address and model", () => {
    expect(modelFromConfig(local(), {}).id).toBe("openai-compatible:http://127.0.0.1:8000/v1#Qwen3-8B");
    expect(modelFromConfig(hosted(), { HF_TOKEN: "hf_x123456" }).id).toBe("hugging-face:auto#Qwen/Qwen3-8B");
    expect(modelFromConfig(hosted({ endpointUrl: "http://127.0.0.1:8080" }), {}).id).toBe(
      "hugging-face:http://127.0.0.1:8080#Qwen/Qwen3-8B",
    );
  });

  test("tells apart what answers differently, and only that", () => {
    const ids = [{}, { temperature: 0 }, { temperature: 1 }, { seed: 1 }, { extraBody: { top_k: 5 } }].map(
      (more) => modelFromConfig(local(more), {}).id,
    );
    expect(new Set(ids).size).toBe(ids.length);
    expect(modelFromConfig(local({ concurrency: 2, retries: { attempts: 1 } }), {}).id).toBe(ids[0]);
  });

  test("has no query of the URL", () => {
    const config = local({ baseUrl: "http://127.0.0.1:8000/v1?api-key=0123456789abcdef" });
    const model = modelFromConfig(config, {});
    expect(model.id).toBe("openai-compatible:http://127.0.0.1:8000/v1#Qwen3-8B");
    expect(inspect(model, { depth: 10, showHidden: true })).not.toContain("0123456789abcdef");
  });
});

describe("keys", () => {
  const remote = (more: object = {}) => local({ baseUrl: "https://models.example/v1", ...more });

  test("a server elsewhere needs one, by default from the usual variable", () => {
    expect(() => modelFromConfig(remote(), {})).toThrow(/OPENAI_API_KEY is not set/);
    expect(() => modelFromConfig(hosted(), {})).toThrow(/HF_TOKEN is not set/);
    expect(() => modelFromConfig(remote({ apiKeyEnv: "MINE" }), { OPENAI_API_KEY: "sk-1" })).toThrow(/MINE is not set/);
    expect(() => modelFromConfig(remote(), { OPENAI_API_KEY: "sk-1" })).not.toThrow();
    expect(() => modelFromConfig(remote({ apiKeyEnv: null }), {})).not.toThrow();
  });

  test("a key in place of the variable's name is refused without being shown", () => {
    const parsed = modelConfigSchema.safeParse({ ...local(), apiKeyEnv: "sk-0123456789" });
    expect(parsed.success).toBe(false);
    expect(inspect(parsed.error)).not.toContain("sk-0123456789");
  });

  test("a server on this machine does not get the key of a hosted service unless told so", async () => {
    const server = await startOpenAIServer();
    onTestFinished(server.close);
    const environment = { OPENAI_API_KEY: "sk-hosted", MINE: "mine-1234" };
    await modelFromConfig(local({ baseUrl: `${server.url}/v1` }), environment).complete(ask);
    await modelFromConfig(local({ baseUrl: `${server.url}/v1`, apiKeyEnv: "MINE" }), environment).complete(ask);
    expect(server.seen.map(({ headers }) => headers.authorization)).toEqual([undefined, "Bearer mine-1234"]);
  });
});

test("defaults fill in what a request leaves open, and reach the server", async () => {
  const server = await startOpenAIServer();
  onTestFinished(server.close);
  const config = local({
    baseUrl: `${server.url}/v1`,
    temperature: 0.7,
    topP: 0.9,
    maxTokens: 9,
    seed: 3,
    extraBody: { top_k: 5 },
  });
  await modelFromConfig(config, {}).complete(ask); // has a temperature and maxTokens of its own
  expect(JSON.parse(server.seen[0]?.body ?? "")).toMatchObject({
    temperature: ask.temperature,
    max_tokens: ask.maxTokens,
    top_p: 0.9,
    seed: 3,
    top_k: 5,
  });
});

test("a retried failure counts against the cap on calls; a kept answer does not", async () => {
  let calls = 0;
  const server = await startServer((_request, response) => {
    calls += 1;
    response.writeHead(calls === 1 ? 503 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify({ choices: [{ message: { content: "fine" }, finish_reason: "stop" }] }));
  });
  onTestFinished(server.close);
  const budget = createBudget({ maxCalls: 2 });
  const clock = { now: () => 0, sleep: async () => {} };
  const model = modelFromConfig(local({ baseUrl: server.url }), {}, { budget, cache: memoryStore(), clock });
  expect((await model.complete(ask)).content).toBe("fine");
  expect((await model.complete(ask)).content).toBe("fine");
  expect(budget.spent().calls).toBe(2);
  await expect(model.complete(ask, { epoch: 1 })).rejects.toMatchObject({ code: "BUDGET_REACHED" });
});

test("the hosted router gets the model, the token and the organisation billed", async () => {
  const server = await startOpenAIServer();
  onTestFinished(server.close);
  const config = hosted({ billTo: "my-lab" });
  const model = modelFromConfig(config, { HF_TOKEN: "hf_token123" }, { dispatcher: everythingTo(server.port) });
  expect(await model.complete(ask)).toEqual(SCENARIOS.text.response);
  expect(server.seen[0]).toMatchObject({
    url: "/v1/chat/completions",
    headers: { host: "router.huggingface.co", authorization: "Bearer hf_token123", "x-hf-bill-to": "my-lab" },
  });
  expect(JSON.parse(server.seen[0]?.body ?? "")).toMatchObject({ model: "Qwen/Qwen3-8B", stream: true });
});

test("a named hosted provider is looked up on the Hub and called through the router", async () => {
  const server = await startServer((request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const mapping = { together: { status: "live", providerId: "qwen3-at-together", task: "conversational" } };
    response.end(
      JSON.stringify(
        request.url.startsWith("/api/models/")
          ? { id: "org/looked-up", inferenceProviderMapping: mapping }
          : {
              id: "1",
              created: 1,
              model: "qwen3-at-together",
              choices: [{ message: { content: "from together" }, finish_reason: "stop" }],
              usage: { prompt_tokens: 1, completion_tokens: 2 },
            },
      ),
    );
  });
  onTestFinished(server.close);
  const config = hosted({ model: "org/looked-up", inferenceProvider: "together", stream: false });
  const model = modelFromConfig(config, { HF_TOKEN: "hf_token123" }, { dispatcher: everythingTo(server.port) });
  expect(model.id).toBe("hugging-face:together#org/looked-up");
  expect((await model.complete(ask)).content).toBe("from together");
  expect(server.seen.map(({ headers, url }) => `${headers.host}${url}`)).toEqual([
    "huggingface.co/api/models/org/looked-up?expand[]=inferenceProviderMapping",
    "router.huggingface.co/together/v1/chat/completions",
  ]);
  expect(JSON.parse(server.seen[1]?.body ?? "")).toMatchObject({ model: "qwen3-at-together" });
});

test("a model that the provider does not have is the user's affair, with the Hub's words", async () => {
  const server = await startServer((_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ inferenceProviderMapping: {} }));
  });
  onTestFinished(server.close);
  const config = hosted({ model: "org/nowhere", inferenceProvider: "together" });
  const model = modelFromConfig(config, { HF_TOKEN: "hf_token123" }, { dispatcher: everythingTo(server.port) });
  await expect(model.complete(ask)).rejects.toMatchObject({ code: "CONFIG_INVALID" });
});

test("the hosted router is not asked with a token that is none of Hugging Face's", async () => {
  const model = modelFromConfig(hosted(), { HF_TOKEN: "sk-other" });
  await expect(model.complete(ask)).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    hint: expect.stringContaining("hf_"),
  });
});
