import OpenAI from "openai";
import type { ResponseStreamEvent } from "openai/resources/responses/responses";
import { afterEach, describe, expect, it } from "vitest";
import type { ChatRequest } from "../../src/models/chat-model.ts";
import { parseAction } from "../../synth/proxy/action.ts";
import { identityFaults } from "../../synth/proxy/identity.ts";
import { knowledgeOf } from "../../synth/simulator/knowledge.ts";
import { serveSimulator } from "../../synth/simulator/server.ts";
import { simulatedModel, simulatorConfigSchema } from "../../synth/simulator/simulator.ts";
import { gsm8k } from "../../synth/tasks/gsm8k.ts";
import { startServer } from "../models/loopback.ts";
import { recordInProcess, recordOverHttp, replayInProcess } from "./fetch-setting.ts";
import { agentUrl, replayOf, TOKEN } from "./proxy-setting.ts";

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

const openai = (baseURL: string, fetch: typeof globalThis.fetch = globalThis.fetch): OpenAI =>
  new OpenAI({ baseURL, apiKey: TOKEN, fetch, maxRetries: 0 });

const weather = {
  type: "function" as const,
  name: "weather",
  description: "Weather of a city",
  parameters: { type: "object", properties: { city: { type: "string" } } },
  strict: false,
};

/** The simulator server before a model that gives that answer and keeps what it was asked. */
async function answering(answer: { content: string; city?: string }) {
  const asked: ChatRequest[] = [];
  const { content, city } = answer;
  const toolCalls =
    city === undefined ? [] : [{ id: "call_1", name: "weather", arguments: JSON.stringify({ city, unit: "C" }) }];
  const server = await kept(
    serveSimulator({
      model: {
        id: "scripted",
        async complete(request) {
          asked.push(request);
          const usage = { promptTokens: 10, completionTokens: 4 };
          return { content, toolCalls, finishReason: "stop", model: "scripted", usage };
        },
      },
      port: 0,
      now: () => new Date(1_700_000_000_000),
    }),
  );
  return { asked, url: server.url };
}

describe("the simulator server's Responses API", () => {
  it("answers as OpenAI's library expects it, whole and streamed, text and tool calls", async () => {
    const { url } = await answering({ content: "let me  look\nthere", city: "São Paulo" });
    const client = openai(url);
    const body = { model: "m", input: "weather?", tools: [weather] };
    const whole = await client.responses.create(body);
    expect(whole).toMatchObject({
      status: "completed",
      model: "scripted",
      created_at: 1_700_000_000,
      output_text: "let me  look\nthere",
      usage: { input_tokens: 10, output_tokens: 4, total_tokens: 14 },
    });
    const call = { type: "function_call", call_id: "call_1", name: "weather" };
    expect(whole.output[1]).toMatchObject({ ...call, arguments: '{"city":"São Paulo","unit":"C"}' });

    const events: ResponseStreamEvent[] = [];
    const stream = client.responses.stream(body);
    // What the library has put together from the deltas, before the whole answer replaces it.
    const gathered: unknown[] = [];
    stream.on("response.output_text.delta", ({ snapshot }) => gathered.push(snapshot));
    stream.on("response.function_call_arguments.delta", ({ snapshot }) => gathered.push(snapshot));
    for await (const event of stream) events.push(event);
    expect(gathered).toContain("let me  look\nthere");
    expect(gathered.at(-1)).toBe('{"city":"São Paulo","unit":"C"}');
    const final = await stream.finalResponse();
    expect(final.output.map(({ id: _, ...item }) => item)).toMatchObject(
      whole.output.map(({ id: _, ...item }) => item),
    );
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at));
    expect([...new Set(events.map(({ type }) => type))]).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.completed",
    ]);
  });

  it("shows its model instructions, messages, calls and their outputs as the chat they stand for", async () => {
    const { url, asked } = await answering({ content: "ok" });
    await openai(url).responses.create({
      model: "m",
      instructions: "You are it.",
      tools: [weather],
      input: [
        { role: "developer", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "input_text", text: "in two " },
            { type: "input_text", text: "parts" },
          ],
        },
        { type: "reasoning", id: "rs_1", summary: [] },
        {
          type: "message",
          id: "msg_1",
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text: "two calls", annotations: [] }],
        },
        { type: "function_call", call_id: "c1", name: "weather", arguments: '{"city":"A"}' },
        { type: "function_call", call_id: "c2", name: "weather", arguments: '{"city":"B"}' },
        { type: "function_call_output", call_id: "c1", output: "sunny" },
        { type: "function_call_output", call_id: "c2", output: [{ type: "input_text", text: "rain" }] },
      ],
    });
    const call = (id: string, city: string) => ({ id, name: "weather", arguments: JSON.stringify({ city }) });
    expect(asked[0]?.messages).toEqual([
      { role: "system", content: "You are it." },
      { role: "system", content: "Be brief." },
      { role: "user", content: "in two parts" },
      { role: "assistant", content: "two calls", toolCalls: [call("c1", "A"), call("c2", "B")] },
      { role: "tool", content: "sunny", toolCallId: "c1" },
      { role: "tool", content: "rain", toolCallId: "c2" },
    ]);
    const { parameters, name, description } = weather;
    expect(asked[0]?.tools).toEqual([{ name, description, parameters }]);
  });

  it("refuses what it cannot do, and says so", async () => {
    const { url, asked } = await answering({ content: "ok" });
    const refused = (body: object) =>
      openai(url).responses.create({ model: "m", input: "x", ...body }) as Promise<unknown>;
    await expect(refused({ previous_response_id: "resp_1" })).rejects.toThrow("stores nothing");
    await expect(refused({ tools: [{ type: "web_search" }] })).rejects.toThrow("only function tools");
    await expect(refused({ input: [{ type: "item_reference", id: "x" }] })).rejects.toMatchObject({ status: 400 });
    expect(asked).toHaveLength(0);
  });

  it("plays a role of a team from its instructions, as chat completions do", async () => {
    const tasks = await gsm8k.load({ seed: 5, limit: 1 });
    const task = tasks[0]!;
    const config = simulatorConfigSchema.parse({ provider: "simulator", hardRate: 0, noise: 0 });
    const model = simulatedModel({ config, solve: knowledgeOf(tasks) });
    const { url } = await kept(serveSimulator({ model, port: 0, now: () => new Date(0) }));
    const instructions = "You are the planner of a team that solves a word problem one calculation at a time.";
    const content = `Problem: ${task.text}\n\nSolve it one calculation at a time.`;
    const client = openai(url);
    const planned = await client.responses.create({ model: "m", instructions, input: content });
    expect(planned.output_text).toMatch(/^Plan 1: /u);
    const chatted = await client.chat.completions.create({
      model: "m",
      messages: [
        { role: "system", content: instructions },
        { role: "user", content },
      ],
      seed: 0,
    });
    expect(chatted.choices[0]?.message.content).toBe(planned.output_text);
  });
});

describe("Responses on tape", () => {
  const eventsOf = async (client: OpenAI, input: string): Promise<ResponseStreamEvent[]> => {
    const events: ResponseStreamEvent[] = [];
    const stream = await client.responses.create({ model: "m", input, tools: [weather], stream: true });
    for await (const event of stream) events.push(event);
    return events;
  };

  it("are recorded and replayed event for event, whole and streamed, by either front from the other's tape", async () => {
    const { url } = await answering({ content: "let me look", city: "Oslo" });
    const program = async (client: OpenAI) => [
      await eventsOf(client, "one"),
      (await client.responses.create({ model: "m", input: "two" })).output,
      await eventsOf(client, "three"),
    ];
    const overHttp = await recordOverHttp(url);
    const live = await program(openai(agentUrl(overHttp.proxy, "a")));
    const tape = await overHttp.finish();
    const chunks = tape.calls.map(({ response }) => response.chunks?.length ?? 1);
    expect(chunks[0]).toBeGreaterThan(1);
    const proxied = await kept(replayOf(tape));
    expect(await program(openai(agentUrl(proxied.proxy, "a")))).toEqual(live);
    expect(proxied).toMatchObject({ liveCalls: 0, unplayed: 0, levels: { L0: 3, L1: 0, L2: 0 } });
    const replay = replayInProcess(tape);
    expect(await program(openai("http://model.test/v1", replay.forAgent("a")))).toEqual(live);
    expect(identityFaults(replay.finish())).toEqual([]);

    const inProcess = recordInProcess(url);
    const again = await program(openai(url, inProcess.forAgent("a")));
    const crossed = await kept(replayOf(inProcess.tape()));
    expect(await program(openai(agentUrl(crossed.proxy, "a")))).toEqual(again);
  });

  it("have this run's ids put into text and arguments, though the stream cuts them in pieces", async () => {
    const [OLD, NEW] = ["11111111-2222-4333-8444-555555555555", "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"];
    const said = `I ask ${OLD}, then ${OLD}.`;
    const args = JSON.stringify({ worker: OLD });
    const item = { type: "message", id: "msg_1", role: "assistant", status: "completed" };
    const call = { type: "function_call", id: "fc_1", call_id: "c1", name: "assign", status: "completed" };
    const part = { type: "output_text", text: said, annotations: [] };
    const output = [
      { ...item, content: [part] },
      { ...call, arguments: args },
    ];
    const answer = { id: "resp_1", object: "response", model: "m", status: "completed", output };
    const events: object[] = [
      { type: "response.created", response: { ...answer, output: [] } },
      { type: "response.output_item.added", output_index: 0, item: { ...item, content: [] } },
      { type: "response.output_item.added", output_index: 1, item: { ...call, arguments: "" } },
      {
        type: "response.content_part.added",
        item_id: "msg_1",
        output_index: 0,
        content_index: 0,
        part: { ...part, text: "" },
      },
    ];
    // Text and arguments interleaved, five characters at a time.
    for (let at = 0; at < said.length; at += 5) {
      const text = { type: "response.output_text.delta", item_id: "msg_1", output_index: 0, content_index: 0 };
      events.push({ ...text, delta: said.slice(at, at + 5) });
      const more = { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 1 };
      if (at < args.length) events.push({ ...more, delta: args.slice(at, at + 5) });
    }
    events.push({ type: "response.completed", response: answer });
    const server = await kept(
      startServer((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`);
        response.end();
      }),
    );
    const recording = await recordOverHttp(server.url);
    const ask = (id: string) => `Workers:\n${id}\nWho?`;
    await eventsOf(openai(recording.proxy.baseUrl), ask(OLD));
    const tape = await recording.finish();
    const proxied = await kept(replayOf(tape));
    const replay = replayInProcess(tape);
    const lane = tape.calls[0]!.lane;
    for (const client of [
      openai(agentUrl(proxied.proxy, lane)),
      openai("http://model.test/v1", replay.forAgent(lane)),
    ]) {
      const seen = await eventsOf(client, ask(NEW));
      const deltas = (type: string) =>
        seen.map((event) => ("delta" in event && event.type === type ? event.delta : "")).join("");
      expect(deltas("response.output_text.delta")).toBe(said.replaceAll(OLD, NEW));
      expect(deltas("response.function_call_arguments.delta")).toBe(args.replaceAll(OLD, NEW));
      expect(seen).toHaveLength(events.length);
      expect(JSON.stringify(seen)).not.toContain(OLD);
    }
    expect([proxied.levels.L1, replay.levels.L1]).toEqual([1, 1]);
  });

  it("take a replacement, text or whole answer, into a stream that OpenAI's library reads", async () => {
    const { url } = await answering({ content: "let me look", city: "Oslo" });
    const recording = await recordOverHttp(url);
    await eventsOf(openai(recording.proxy.baseUrl), "one");
    const tape = await recording.finish();
    const replaced = async (action: string) => {
      const replay = await kept(replayOf(tape, { cut: { at: 0, action: parseAction(action) }, upstreamUrl: url }));
      const stream = openai(replay.proxy.baseUrl).responses.stream({ model: "m", input: "one", tools: [weather] });
      let text = "";
      stream.on("response.output_text.delta", ({ delta }) => {
        text += delta;
      });
      const final = await stream.finalResponse();
      return { text, final };
    };
    const words = await replaced("another  answer");
    expect([words.text, words.final.output_text, words.final.output.length]).toEqual([
      "another  answer",
      "another  answer",
      1,
    ]);
    expect(words.final.usage?.input_tokens).toBe(10);
    const call = { type: "function_call", id: "fc_9", call_id: "c9", name: "weather", arguments: '{"city":"Rome"}' };
    const called = await replaced(JSON.stringify({ id: "resp_9", object: "response", model: "m", output: [call] }));
    expect(called.final.output).toMatchObject([call]);
  });
});
