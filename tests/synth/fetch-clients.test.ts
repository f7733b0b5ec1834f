import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { parseAction } from "../../synth/proxy/action.ts";
import { identityFaults } from "../../synth/proxy/identity.ts";
import { knowledgeOf } from "../../synth/simulator/knowledge.ts";
import { serveSimulator } from "../../synth/simulator/server.ts";
import { simulatedModel, simulatorConfigSchema } from "../../synth/simulator/simulator.ts";
import type { TapeFolder } from "../../synth/tape/loader.ts";
import { gsm8k } from "../../synth/tasks/gsm8k.ts";
import { type Handler, startServer } from "../models/loopback.ts";
import { startOpenAIServer } from "../models/openai-server.ts";
import { SCENARIOS } from "../models/scenarios.ts";
import { cutAt, recordInProcess, recordOverHttp, replayInProcess } from "./fetch-setting.ts";
import { agentUrl, completion, replayOf, TOKEN } from "./proxy-setting.ts";

type Fetch = typeof globalThis.fetch;

let open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const server of open) await server.close();
  open = [];
});
const kept = async <S extends { close(): Promise<void> }>(starting: Promise<S>): Promise<S> => {
  const server = await starting;
  open.push(server);
  return server;
};
const server = async (handler: Handler): Promise<string> => {
  const started = startServer((request, response) => {
    response.setHeader("content-type", "application/json");
    return handler(request, response);
  });
  return `${(await kept(started)).url}/v1`;
};
const scenarios = async (): Promise<string> => `${(await kept(startOpenAIServer())).url}/v1`;

const BASE = "http://model.test/v1";
const KEY = "sk-of-the-test";
const openai = (fetch: Fetch, baseURL: string, apiKey = KEY): OpenAI => new OpenAI({ baseURL, apiKey, fetch });
const aiModel = (fetch: Fetch, baseURL: string, apiKey = KEY) =>
  createOpenAICompatible({ name: "test", baseURL, apiKey, fetch, includeUsage: true })("m");

/** Everything a program can ask the scenarios server through OpenAI's library, and what it sees. */
async function throughOpenAI(fetch: Fetch, baseURL: string, apiKey?: string): Promise<unknown[]> {
  const client = openai(fetch, baseURL, apiKey);
  const seen: unknown[] = [];
  for (const name of Object.keys(SCENARIOS)) {
    const body = { model: "m", messages: [{ role: "user" as const, content: `say: ${name}` }] };
    const whole = await client.chat.completions.create(body);
    seen.push([whole.choices, whole.usage]);
    const stream = await client.chat.completions.create({
      ...body,
      stream: true,
      stream_options: { include_usage: true },
    });
    for await (const chunk of stream) seen.push(chunk);
    const helper = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } });
    const final = await helper.finalChatCompletion().catch((error: Error) => error.message);
    seen.push(final);
  }
  return seen;
}

/** The same through the AI SDK, with its own tool loop. */
async function throughAiSdk(fetch: Fetch, baseURL: string): Promise<unknown[]> {
  const model = aiModel(fetch, baseURL);
  const tools = {
    weather: tool({ inputSchema: z.object({ city: z.string() }), execute: ({ city }) => `sunny in ${city}` }),
  };
  const seen: unknown[] = [];
  for (const name of Object.keys(SCENARIOS)) {
    const asked = { model, prompt: `say: ${name}`, tools, stopWhen: stepCountIs(1) };
    const whole = await generateText(asked);
    seen.push([whole.text, whole.reasoningText, whole.toolCalls, whole.toolResults, whole.finishReason, whole.usage]);
    const streamed = streamText(asked);
    const parts: unknown[] = [];
    for await (const part of streamed.fullStream) {
      if (part.type === "text-delta" || part.type === "tool-call" || part.type === "tool-result") parts.push(part);
    }
    seen.push(parts, await streamed.usage, await streamed.finishReason);
  }
  return seen;
}

describe("OpenAI's library and the AI SDK over the fetch wrapper", () => {
  it.each([
    ["openai", throughOpenAI],
    ["ai", throughAiSdk],
  ] as const)(
    "%s sees in the replay what it saw live: whole, streamed, tools, reasoning, usage",
    async (_, program) => {
      const base = await scenarios();
      const plain = await program(fetch, base);
      const recording = recordInProcess(base);
      expect(await program(recording.forAgent("a"), base)).toEqual(plain);
      const replay = replayInProcess(recording.tape());
      expect(await program(replay.forAgent("a"), BASE)).toEqual(plain);
      expect(identityFaults(replay.finish())).toEqual([]);
      expect(replay.levels).toMatchObject({ L1: 0, L2: 0 });
    },
  );

  it("a tape recorded in process replays through the proxy, and the other way round", async () => {
    const base = await scenarios();
    const inProcess = recordInProcess(base);
    const live = await throughOpenAI(inProcess.forAgent("a"), base);
    const proxied = await kept(replayOf(inProcess.tape()));
    expect(await throughOpenAI(fetch, agentUrl(proxied.proxy, "a"), TOKEN)).toEqual(live);
    expect(proxied).toMatchObject({ unplayed: 0, liveCalls: 0, stopped: undefined, levels: { L1: 0, L2: 0 } });

    const overHttp = await recordOverHttp(base);
    await throughOpenAI(fetch, agentUrl(overHttp.proxy, "a"), TOKEN);
    const replay = replayInProcess(await overHttp.finish());
    expect(await throughOpenAI(replay.forAgent("a"), BASE)).toEqual(live);
    expect(identityFaults(replay.finish())).toEqual([]);
  });

  it("identical calls at once get the recorded answers, each once", async () => {
    let n = 0;
    const base = await server((_, response) => void response.end(completion(`answer ${n++}`)));
    const ask = async (fetch: Fetch) => {
      const client = openai(fetch, base);
      const model = aiModel(fetch, base);
      const messages = [{ role: "user" as const, content: "same" }];
      const both = Array.from({ length: 8 }, (_, at) =>
        at % 2 === 0
          ? client.chat.completions.create({ model: "m", messages }).then(({ choices }) => choices[0]?.message.content)
          : generateText({ model, messages }).then(({ text }) => text),
      );
      return (await Promise.all(both)).sort();
    };
    const recording = recordInProcess(base);
    const live = await ask(recording.fetch);
    expect(new Set(live).size).toBe(8);
    const replay = replayInProcess(recording.tape());
    expect(await ask(replay.fetch)).toEqual(live);
    expect(identityFaults(replay.finish())).toEqual([]);
  });

  it("carries bodies of megabytes both ways", async () => {
    const base = await server(
      ({ body }, response) => void response.end(completion(JSON.parse(body).messages[0].content)),
    );
    const large = "é".repeat(1_000_000);
    const ask = async (fetch: Fetch) =>
      (await openai(fetch, base).chat.completions.create({ model: "m", messages: [{ role: "user", content: large }] }))
        .choices[0]?.message.content;
    const recording = recordInProcess(base);
    expect(await ask(recording.fetch)).toBe(large);
    expect(await ask(replayInProcess(recording.tape()).fetch)).toBe(large);
  });

  it("retries of the libraries, marked or not, fold into one call; the replay has none", async () => {
    let n = 0;
    const base = await server((_, response) => {
      const status = [429, 200, 500, 200][n++ % 4] ?? 200;
      response.writeHead(status, { "retry-after-ms": "1" });
      response.end(status === 200 ? completion(`answer ${n}`) : '{"error":{"message":"busy"}}');
    });
    const ask = async (fetch: Fetch) => {
      const asked = { model: "m", messages: [{ role: "user" as const, content: "x" }] };
      const first = await openai(fetch, base).chat.completions.create(asked);
      const second = await generateText({ model: aiModel(fetch, base), prompt: "y" });
      return [first.choices[0]?.message.content, second.text];
    };
    const recording = recordInProcess(base);
    expect(await ask(recording.fetch)).toEqual(["answer 2", "answer 4"]);
    const tape = recording.tape();
    expect(tape.calls.map(({ response }) => response.status)).toEqual([429, 200, 500, 200]);
    const replay = replayInProcess(tape);
    expect(await ask(replay.fetch)).toEqual(["answer 2", "answer 4"]);
    expect(identityFaults(replay.finish())).toEqual([]);
    expect(replay.levels.L0).toBe(2);
  });

  it("an error of the model server reaches the libraries' own error types, live and replayed", async () => {
    const base = await server((_, response) => {
      response.writeHead(400, { "x-request-id": "req-1" });
      response.end('{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found"}}');
    });
    const ask = async (fetch: Fetch) => {
      const asked = { model: "m", messages: [{ role: "user" as const, content: "x" }] };
      const first = await openai(fetch, base)
        .chat.completions.create(asked)
        .catch((error: unknown) => error);
      const second = await generateText({ model: aiModel(fetch, base), prompt: "x" }).catch((error: unknown) => error);
      return [first, second];
    };
    const expected: object[] = [
      { constructor: OpenAI.BadRequestError, status: 400, code: "model_not_found", requestID: "req-1" },
      { name: "AI_APICallError", statusCode: 400, isRetryable: false, message: "no such model" },
    ];
    const recording = recordInProcess(base);
    expect(await ask(recording.fetch)).toMatchObject(expected);
    const replay = replayInProcess(recording.tape());
    expect(await ask(replay.fetch)).toMatchObject(expected);
    expect(replay.unplayed).toBe(0);
  });

  it("a divergence reaches both libraries as an error with the difference, asked once", async () => {
    const base = await scenarios();
    const recording = recordInProcess(base);
    await openai(recording.fetch, base).chat.completions.create({
      model: "m",
      messages: [{ role: "user", content: "say: text" }],
    });
    const tape = recording.tape();
    let asked = 0;
    const counted = (): Fetch => {
      const replay = replayInProcess(tape);
      asked = 0;
      return (...call) => {
        asked++;
        return replay.fetch(...call);
      };
    };
    const viaOpenAI = openai(counted(), BASE).chat.completions.create({
      model: "m",
      messages: [{ role: "user", content: "say: nothing" }],
    });
    await expect(viaOpenAI).rejects.toThrow(/REPLAY_DIVERGED|recorded: say: text\n {4}asked: {4}say: nothing/u);
    expect(asked).toBe(1);
    const viaAi = generateText({ model: aiModel(counted(), BASE), prompt: "say: nothing" });
    await expect(viaAi).rejects.toThrow("asked:    say: nothing");
    expect(asked).toBe(1);
  });

  it("streams that a program breaks off, when recorded and when replayed, end there and are not missed", async () => {
    const base = await server((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "first" } }] })}\n\n`);
    });
    const firstPiece = async (fetch: Fetch) => {
      const stream = await openai(fetch, base).chat.completions.create({
        model: "m",
        messages: [{ role: "user", content: "x" }],
        stream: true,
      });
      for await (const chunk of stream) return chunk.choices[0]?.delta.content;
      return undefined;
    };
    const abortInAi = async (fetch: Fetch) => {
      const leaving = new AbortController();
      const { textStream } = streamText({
        model: aiModel(fetch, base),
        prompt: "x",
        abortSignal: leaving.signal,
        onAbort: () => {},
      });
      for await (const text of textStream) {
        leaving.abort();
        return text;
      }
      return undefined;
    };
    const recording = recordInProcess(base);
    expect([await firstPiece(recording.forAgent("a")), await abortInAi(recording.forAgent("b"))]).toEqual([
      "first",
      "first",
    ]);
    await expect.poll(() => recording.calls).toBe(2);
    const tape = recording.tape();
    expect(tape.calls.map(({ response }) => response.outcome)).toEqual(["aborted", "aborted"]);
    const replay = replayInProcess(tape);
    expect([await firstPiece(replay.forAgent("a")), await abortInAi(replay.forAgent("b"))]).toEqual(["first", "first"]);
    expect(identityFaults(replay.finish())).toEqual([]);
  });

  it("the list of models is on tape too, as often as asked, and is no call", async () => {
    const list = { object: "list", data: [{ id: "m", object: "model", created: 0, owned_by: "x" }] };
    const base = await server(({ url }, response) => {
      response.end(url.endsWith("/models") ? JSON.stringify(list) : completion("x"));
    });
    const names = async (fetch: Fetch) => (await openai(fetch, base).models.list()).data.map(({ id }) => id);
    const recording = recordInProcess(base);
    expect(await names(recording.fetch)).toEqual(["m"]);
    await openai(recording.fetch, base).chat.completions.create({ model: "m", messages: [] });
    const replay = replayInProcess(recording.tape());
    expect([await names(replay.fetch), await names(replay.fetch)]).toEqual([["m"], ["m"]]);
    expect(replay.unplayed).toBe(1);
  });
});

describe("a replacement over the fetch wrapper", () => {
  it("turns the AI SDK's tool loop: a text becomes the stream it expects, a tool call is carried out", async () => {
    const base = await server(({ body }, response) => {
      const { messages, stream } = JSON.parse(body);
      const said = `after ${messages.at(-1).content}`;
      if (stream !== true) return void response.end(completion(said));
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(
        `data: ${JSON.stringify({ id: "s", model: "m", choices: [{ index: 0, delta: { content: said } }] })}\n\n`,
      );
      response.end(
        `data: ${JSON.stringify({ id: "s", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`,
      );
    });
    const carriedOut: string[] = [];
    const run = async (fetch: Fetch): Promise<string> => {
      const { textStream } = streamText({
        model: aiModel(fetch, base),
        prompt: "go",
        stopWhen: stepCountIs(3),
        tools: {
          add: tool({
            inputSchema: z.object({ a: z.number(), b: z.number() }),
            execute: ({ a, b }) => {
              carriedOut.push(`${a}+${b}`);
              return a + b;
            },
          }),
        },
      });
      let said = "";
      for await (const text of textStream) said += text;
      return said;
    };
    const recording = recordInProcess(base);
    expect(await run(recording.fetch)).toBe("after go");
    const tape: TapeFolder = recording.tape();
    const text = replayInProcess(tape, { cut: cutAt(0, "something else"), live: { upstream: new URL(base), fetch } });
    expect(await run(text.fetch)).toBe("something else");
    const call = { id: "c1", type: "function", function: { name: "add", arguments: '{"a":1,"b":2}' } };
    const message = { role: "assistant", content: null, tool_calls: [call] };
    const action = parseAction(JSON.stringify({ choices: [{ index: 0, message, finish_reason: "tool_calls" }] }));
    const tools = replayInProcess(tape, { cut: { at: 0, action }, live: { upstream: new URL(base), fetch } });
    expect(await run(tools.fetch)).toBe("after 3");
    expect(carriedOut).toEqual(["1+2"]);
    expect(tools.finish()).toMatchObject({ actions: 1, liveCalls: 1, unplayed: 0, stopped: undefined });
  });

  it("makes a team on OpenAI's library go another way: before from tape, after live and downstream of it", async () => {
    const tasks = await gsm8k.load({ seed: 5, limit: 1 });
    const task = tasks[0]!;
    const config = simulatorConfigSchema.parse({ provider: "simulator", hardRate: 0, noise: 0 });
    const model = simulatedModel({ config, solve: knowledgeOf(tasks) });
    const simulator = await kept(serveSimulator({ model, port: 0, now: () => new Date(0) }));
    const asked: string[] = [];
    /** Planner, then solver, twice; every agent has a client of its own. */
    const team = async (forAgent: (agent: string) => Fetch): Promise<string[]> => {
      const log: string[] = [];
      for (const [turn, agent] of ["planner", "solver", "planner", "solver"].entries()) {
        const content = `Problem: ${task.text}\n\nLog:\n${log.join("\n")}\n\nTurn: ${agent}. Go on.`;
        asked.push(content);
        const stream = await openai(forAgent(agent), simulator.url).chat.completions.create({
          model: "simulator",
          messages: [{ role: "user", content }],
          seed: turn,
          stream: true,
        });
        let line = "";
        for await (const chunk of stream) line += chunk.choices[0]?.delta.content ?? "";
        log.push(`${turn} ${agent}: ${line}`);
      }
      return log;
    };
    const recording = recordInProcess(simulator.url);
    const recorded = await team(recording.forAgent);
    const tape = recording.tape(recorded.at(-1));
    const identity = replayInProcess(tape);
    expect(await team(identity.forAgent)).toEqual(recorded);
    expect(identityFaults(identity.finish({ answer: recorded.at(-1) }))).toEqual([]);
    asked.length = 0;
    const live = { upstream: new URL(simulator.url), fetch };
    const counterfactual = replayInProcess(tape, { cut: cutAt(1, "1 + 1 = 7777"), live });
    const rerun = await team(counterfactual.forAgent);
    expect(rerun.slice(0, 2)).toEqual([recorded[0], "1 solver: 1 + 1 = 7777"]);
    expect(asked.slice(2).every((prompt) => prompt.includes("7777"))).toBe(true);
    expect(counterfactual).toMatchObject({ actions: 1, liveCalls: 2, unplayed: 0, levels: { L0: 2, L1: 0, L2: 0 } });
  });
});
