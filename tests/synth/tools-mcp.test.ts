import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterEach, describe, expect, it } from "vitest";
import type { TapeFolder } from "../../synth/tape/loader.ts";
import { validateTape } from "../../synth/tape/validate.ts";
import { pairRpcIds, withoutRpcIds, withRpcIds } from "../../synth/tools/json-rpc.ts";
import { startServer } from "../models/loopback.ts";
import { type McpHttpServer, serveCalculator } from "./mcp-server.ts";
import { ask, chat, completion } from "./proxy-setting.ts";
import { type ReplayWithTools, recordWithTools, replayWithTools } from "./tool-setting.ts";

let open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const server of open.reverse()) await server.close();
  open = [];
});
const kept = <T extends { close(): Promise<void> }>(server: T): T => {
  open.push(server);
  return server;
};

const calculators = async (options = {}): Promise<McpHttpServer> => kept(await serveCalculator(options));
const model = async (): Promise<string> =>
  kept(await startServer(({ body }, response) => void response.end(completion(`re: ${body.length}`)))).url;
const replaying = async (...args: Parameters<typeof replayWithTools>): Promise<ReplayWithTools> =>
  kept(await replayWithTools(...args));

/** A client of the official library. */
async function connected(toolsUrl: string) {
  const transport = new StreamableHTTPClientTransport(new URL(`${toolsUrl}/calc/mcp`));
  const client = new Client({ name: "test", version: "1.0.0" });
  await client.connect(transport as Parameters<Client["connect"]>[0]);
  const call = async (name: string, args: Record<string, unknown> = {}): Promise<string> => {
    const result = await client.callTool({ name, arguments: args });
    return JSON.stringify(result.content);
  };
  return {
    client,
    call,
    session: () => transport.sessionId,
    /** As a polite client goes: the session ends with it. */
    async leave() {
      await transport.terminateSession();
      await client.close();
    },
  };
}

type Session = Awaited<ReturnType<typeof connected>>;

const said = (text: string): string => JSON.stringify([{ type: "text", text }]);

/** What the program does: a sum with progress, two counts, a failure. */
async function session(toolsUrl: string) {
  const { client, call, leave } = await connected(toolsUrl);
  const tools = (await client.listTools()).tools.map(({ name }) => name);
  const progress: number[] = [];
  const sum = await client.callTool({ name: "add", arguments: { a: 20, b: 22 } }, undefined, {
    onprogress: ({ progress: now }) => progress.push(now),
  });
  const counts = [await call("count"), await call("count")];
  const failed = await client.callTool({ name: "fail", arguments: {} });
  await leave();
  return { tools, sum: JSON.stringify(sum.content), progress, counts, failed };
}

const recorded = async (calculator: McpHttpServer, program: (toolsUrl: string) => Promise<unknown>) => {
  const recording = await recordWithTools(await model(), { calc: calculator.url });
  const seen = await program(recording.proxy.toolsUrl);
  return { seen, tape: await recording.finish(), folder: recording.folder };
};

describe.each([{ json: false }, { json: true }])("MCP over streamable HTTP, answers as JSON: $json", (options) => {
  it("is recorded and replayed, session, progress and failure, without the server", async () => {
    const calculator = await calculators(options);
    const { seen, tape, folder } = await recorded(calculator, session);
    expect(seen).toMatchObject({
      tools: ["add", "count", "fail"],
      sum: said("42"),
      progress: options.json ? [] : [1],
      counts: [said("1"), said("2")],
      failed: { isError: true },
    });
    await calculator.close();
    expect(validateTape(folder).faults).toEqual([]);
    const replay = await replaying(tape);
    expect(await session(replay.proxy.toolsUrl)).toEqual(seen);
    expect(replay.tools).toMatchObject({ liveExchanges: 0, unplayed: 0 });
  });

  it("keeps the server's session ids off the tape", async () => {
    const calculator = await calculators(options);
    const { folder } = await recorded(calculator, session);
    const onDisk = ["tape.jsonl", "bodies.jsonl"].map((name) => readFileSync(join(folder, name), "utf8")).join();
    expect(calculator.sessions).toHaveLength(1);
    expect(onDisk).not.toContain(calculator.sessions[0]);
    expect(onDisk).toContain("calc-session-1");
  });

  it("matches whatever numbers requests have, and answers under the new ones", async () => {
    const calculator = await calculators(options);
    const { tape } = await recorded(calculator, async (url) => {
      const { call, leave } = await connected(url);
      await call("add", { a: 1, b: 2 });
      await call("count");
      await leave();
    });
    const replay = await replaying(tape);
    const { client, call, leave } = await connected(replay.proxy.toolsUrl);
    // The other way round, and with a progress token: other ids for both.
    expect(await call("count")).toBe(said("1"));
    const sum = await client.callTool({ name: "add", arguments: { a: 1, b: 2 } });
    expect(JSON.stringify(sum.content)).toBe(said("3"));
    await leave();
    expect(replay.tools).toMatchObject({ unplayed: 0, levels: { L1: 0, L2: 0 } });
  });

  it("keeps two sessions of one server apart", async () => {
    const calculator = await calculators(options);
    const both = async (url: string, inOrder: (a: Session, b: Session) => Promise<string[]>) => {
      const [a, b] = [await connected(url), await connected(url)];
      const said = await inOrder(a, b);
      for (const each of [a, b]) await each.leave();
      return said;
    };
    const { seen, tape } = await recorded(calculator, (url) =>
      both(url, async (a, b) => [
        await a.call("count"),
        await a.call("count"),
        await b.call("add", { a: 1, b: 1 }),
        await b.call("count"),
      ]),
    );
    expect(seen).toEqual([said("1"), said("2"), said("2"), said("1")]);
    const replay = await replaying(tape);
    const again = await both(replay.proxy.toolsUrl, async (a, b) => [
      await b.call("count"), // under another id than recorded
      await b.call("add", { a: 1, b: 1 }),
      await a.call("count"),
      await a.call("count"),
    ]);
    expect(again).toEqual([said("1"), said("2"), said("1"), said("2")]);
    expect(replay.tools.unplayed).toBe(0);
  });

  it("stops at another argument", async () => {
    const calculator = await calculators(options);
    const adding = (b: number) => async (url: string) => {
      const { call, client } = await connected(url);
      await call("add", { a: 20, b }).finally(() => client.close());
    };
    const { tape } = await recorded(calculator, adding(22));
    const replay = await replaying(tape);
    await expect(adding(23)(replay.proxy.toolsUrl)).rejects.toThrow(/first difference at body\.params\.arguments\.b/u);
    expect(replay.calls.stopped?.code).toBe("REPLAY_DIVERGED");
  });
});

describe("MCP over streamable HTTP and a cut", () => {
  /** A call of a model between two calls of the tool. */
  const program = async (toolsUrl: string, baseUrl: string, more: () => Promise<void> = async () => {}) => {
    const { call, session: id, leave } = await connected(toolsUrl);
    const first = await call("add", { a: 1, b: 1 });
    await ask(baseUrl, chat("x"));
    const second = await call("count");
    await more();
    const result = { first, second, session: id() };
    await leave();
    return result;
  };
  const setting = async () => {
    const calculator = await calculators();
    const upstreamUrl = await model();
    const recording = await recordWithTools(upstreamUrl, { calc: calculator.url });
    const seen = await program(recording.proxy.toolsUrl, recording.proxy.baseUrl);
    return { calculator, upstreamUrl, seen, tape: await recording.finish() };
  };
  const cutAt = (
    at: number,
    { tape, calculator, upstreamUrl }: { tape: TapeFolder; calculator: McpHttpServer; upstreamUrl: string },
  ) => replaying(tape, { cut: { at }, upstreamUrl, tools: { calc: calculator.url } });

  it("gets a new session of the server under the recorded name, and its own answers after the cut", async () => {
    const { seen, ...rest } = await setting();
    const { calculator } = rest;
    const replay = await cutAt(0, rest);
    const before = calculator.asked.length;
    const again = await program(replay.proxy.toolsUrl, replay.proxy.baseUrl);
    expect(again).toEqual(seen); // count: 1 in a session of its own
    expect(calculator.sessions).toHaveLength(2);
    expect(replay.calls.liveCalls).toBe(1);
    const live = calculator.asked.slice(before);
    expect(live.slice(0, 3)).toEqual(["initialize", "notifications/initialized", "tools/call"]);
    expect(live).toContain("DELETE"); // the new session is ended, the recorded one is left alone
  });

  it("opens no session where nothing of it is live", async () => {
    const { seen, ...rest } = await setting();
    const { calculator } = rest;
    const replay = await cutAt(1, rest); // after the last call: everything from tape
    expect(await program(replay.proxy.toolsUrl, replay.proxy.baseUrl)).toEqual(seen);
    expect(calculator.sessions).toHaveLength(1);
    expect(replay.tools.unplayed).toBe(0);
  });

  it("begins new sessions with names of their own", async () => {
    const { seen, ...rest } = await setting();
    const replay = await cutAt(0, rest);
    let second: string | undefined;
    await program(replay.proxy.toolsUrl, replay.proxy.baseUrl, async () => {
      const other = await connected(replay.proxy.toolsUrl);
      expect(await other.call("count")).toBe(said("1"));
      second = other.session();
      await other.leave();
    });
    expect(seen.session).toBe("calc-session-1");
    expect(second).toBe("calc-session-2");
  });

  it("says when the server refuses the recorded handshake", async () => {
    const { tape, upstreamUrl } = await setting();
    const refusing = kept(await startServer((_, response) => void response.writeHead(403).end("no")));
    const replay = await replaying(tape, { cut: { at: 0 }, upstreamUrl, tools: { calc: refusing.url } });
    await expect(program(replay.proxy.toolsUrl, replay.proxy.baseUrl)).rejects.toThrow(
      /refused the recorded handshake/u,
    );
    expect(refusing.seen).toHaveLength(1);
  });
});

describe("ids of JSON-RPC", () => {
  const request = { jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "x", _meta: { progressToken: 7 } } };

  it("are no part of what is asked, but those of a server's own requests are of its answers", () => {
    const other = { ...request, id: "b", params: { ...request.params, _meta: { progressToken: "b" } } };
    expect(withoutRpcIds(request)).toEqual(withoutRpcIds(other));
    expect(withoutRpcIds([request])).toEqual(withoutRpcIds([other]));
    expect(withoutRpcIds({ ...request, method: "tools/list" })).not.toEqual(withoutRpcIds(request));
    const answer = { jsonrpc: "2.0", id: 7, result: {} };
    expect(withoutRpcIds(answer)).toEqual(answer);
    const plain = { id: 7, method: "tools/call" }; // no JSON-RPC: an id there is the tool's affair
    expect(withoutRpcIds(plain)).toEqual(plain);
    const cancelled = (requestId: number) => ({
      jsonrpc: "2.0",
      method: "notifications/cancelled",
      params: { requestId },
    });
    expect(withoutRpcIds(cancelled(1))).toEqual(withoutRpcIds(cancelled(2)));
  });

  it("are put right in answers: whole, in lines of a stream, in batches; nothing else is touched", () => {
    const pairs = pairRpcIds(request, { ...request, id: 9, params: { name: "x", _meta: { progressToken: 9 } } });
    expect(pairs).toBeDefined();
    const now = (text: string): string => withRpcIds(text, pairs!);
    expect(now('{"jsonrpc":"2.0","id":7,"result":{"id":7}}')).toBe('{"jsonrpc":"2.0","id":9,"result":{"id":7}}');
    expect(now('[{"jsonrpc":"2.0","id":7,"error":{}},{"jsonrpc":"2.0","id":8,"result":{}}]')).toBe(
      '[{"jsonrpc":"2.0","id":9,"error":{}},{"jsonrpc":"2.0","id":8,"result":{}}]',
    );
    const progress = (token: number) =>
      `event: message\nid: e1\ndata: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":7}}\n\n`;
    expect(now(progress(7))).toBe(progress(9));
    const serverRequest = '{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}';
    expect(now(serverRequest)).toBe(serverRequest);
    expect(pairRpcIds(request, request)).toBeUndefined();
  });
});
