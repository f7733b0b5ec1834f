import { createBudget, withBudget } from "../../src/models/budget.ts";
import { withCache } from "../../src/models/cache.ts";
import { memoryStore } from "../../src/models/cache-store.ts";
import type { ChatModel } from "../../src/models/chat-model.ts";
import { huggingFace } from "../../src/models/hugging-face.ts";
import { Secret } from "../../src/models/key.ts";
import { withLimiter } from "../../src/models/limiter.ts";
import { openAICompatible } from "../../src/models/openai-compatible.ts";
import { modelConfigSchema, modelFromConfig } from "../../src/models/resolve.ts";
import { withRetry } from "../../src/models/retry.ts";
import { scriptedModel } from "../../src/models/scripted.ts";
import { chatModelConformance, type Subject } from "./chat-model.conformance.ts";
import { everythingTo, type LoopbackServer } from "./loopback.ts";
import { startOpenAIServer } from "./openai-server.ts";
import { MODEL, scenarioOf } from "./scenarios.ts";

const KEY = "hf_conformanceKey0123456789";

function served(make: (server: LoopbackServer) => ChatModel): () => Promise<Subject> {
  return async () => {
    const server = await startOpenAIServer();
    return {
      model: make(server),
      secrets: [KEY],
      nextArrival: () => server.arrived(server.seen.length + 1),
      close: server.close,
    };
  };
}

function scripted(wrap: (model: ChatModel) => ChatModel): () => Promise<Subject> {
  return async () => {
    let arrivals: (() => void)[] = [];
    const model = scriptedModel([
      {
        answer: (request) => {
          for (const arrive of arrivals) arrive();
          arrivals = [];
          const scenario = scenarioOf(request.messages.at(-1)?.content ?? "");
          return scenario === "hang" ? new Promise<never>(() => {}) : scenario.response;
        },
      },
    ]);
    return {
      model: wrap(model),
      secrets: [],
      nextArrival: () => new Promise((resolve) => arrivals.push(resolve)),
      close: async () => {},
    };
  };
}

const apiKey = new Secret(KEY);
const prices = { prompt: 1, completion: 2 };

for (const stream of [true, false]) {
  const way = stream ? "streaming" : "in one piece";
  chatModelConformance(
    `OpenAI-compatible, ${way}`,
    served(({ url }) => openAICompatible({ baseUrl: `${url}/v1/`, model: MODEL, apiKey, stream })),
  );
  chatModelConformance(
    `Hugging Face, self-hosted endpoint, ${way}`,
    served(({ url }) => huggingFace({ endpointUrl: url, model: MODEL, apiKey, stream })),
  );
  chatModelConformance(
    `Hugging Face, hosted router, ${way}`,
    served(({ port }) => huggingFace({ model: "org/toy", apiKey, stream, dispatcher: everythingTo(port) })),
  );
}

chatModelConformance(
  "scripted",
  scripted((model) => model),
);
chatModelConformance(
  "with retries",
  scripted((model) => withRetry(model)),
);
chatModelConformance(
  "with a limiter",
  scripted((model) => withLimiter(model, { concurrency: 2 })),
);
chatModelConformance(
  "with a budget",
  scripted((model) => withBudget(model, createBudget({ maxCost: 10, prices }))),
);
chatModelConformance(
  "with a cache",
  scripted((model) => withCache(model, memoryStore())),
);
chatModelConformance(
  "from a configuration, with everything around it",
  served(({ url }) =>
    modelFromConfig(
      modelConfigSchema.parse({
        provider: "openai-compatible",
        baseUrl: `${url}/v1`,
        model: MODEL,
        apiKeyEnv: "SOME_KEY",
        temperature: 0.5,
        prices,
      }),
      { SOME_KEY: KEY },
      { budget: createBudget({ maxCost: 10, maxCalls: 1000 }), cache: memoryStore() },
    ),
  ),
);
