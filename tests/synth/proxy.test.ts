import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { parseAction } from "../../synth/proxy/action.ts";
import type { AnswerPort } from "../../synth/proxy/answer-port.ts";
import { createCallLog } from "../../synth/proxy/call-log.ts";
import { passThrough } from "../../synth/proxy/live.ts";
import { createUpstream } from "../../synth/proxy/upstream.ts";
import { foldRetries } from "../../synth/tape/fold.ts";
import type { TapeFolder } from "../../synth/tape/loader.ts";
import { showTape } from "../../synth/tape/show.ts";
import { validateTape } from "../../synth/tape/validate.ts";
import { type Handler, type LoopbackServer, startServer } from "../models/loopback.ts";
import { eventsOf, startOpenAIServer } from "../models/openai-server.ts";
import { SCENARIOS } from "../models/scenarios.ts";
import {
  agentUrl,
  ask,
  chat,
  completion,
  contentOf,
  recordFrom,
  replayOf,
  type TestReplay,
  TOKEN,
  UPSTREAM_KEY,
} from "./proxy-setting.ts";

let open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const server of open.reverse()) await server.close();
  open = [];
});

const upstream = async (handler: Handler): Promise<LoopbackServer> => {
  const server = await startServer(handler);
  open.push(server);
  return server;
};
const replaying = async (...args: Parameters<typeof replayOf>): Promise<TestReplay> => {
  const replay = await replayOf(...args);
  open.push(replay);
  return replay;
};
const json = (response: ServerResponse, body: string, status = 200, headers = {}): void => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body);
};
/** Answers each request with its own last message and a running number. */
const counting = (): Handler => {
  let n = 0;
  return ({ body }, response) => json(response, completion(`${JSON.parse(body).messages.at(-1).content}#${n++}`));
};

/** Sizes of the HTTP chunks of an answer as they stand on the wire: how a client's reads fall is the kernel's affair. */
const httpChunks = (base: string, body: unknown): Promise<number[]> =>
  new Promise((resolve, reject) => {
    const url = new URL(`${base}/chat/completions`);
    const text = JSON.stringify(body);
    const parts: Buffer[] = [];
    const socket = connect(Number(url.port), url.hostname, () => {
      const head = `POST ${url.pathname} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${TOKEN}\r\n`;
      socket.write(`${head}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
    });
    socket.on("data", (part) => parts.push(part));
    socket.on("error", reject);
    socket.on("end", () => {
      const whole = Buffer.concat(parts);
      const sizes: number[] = [];
      let at = whole.indexOf("\r\n\r\n") + 4;
      for (;;) {
        const lineEnd = whole.indexOf("\r\n", at);
        const size = Number.parseInt(whole.toString("latin1", at, lineEnd), 16);
        if (!(size > 0)) break;
        sizes.push(size);
        at = lineEnd + 2 + size + 2;
      }
      resolve(sizes);
    });
  });

describe("the recording proxy", () => {
  it("passes requests and answers through, with the upstream's key in the place of the run's token", async () => {
    const server = await upstream((_, response) => json(response, completion("hi"), 200, { "x-request-id": "r1" }));
    const recording = await recordFrom(`${server.url}/base/v1?api-version=2`);
    const seen = await ask(recording.proxy.baseUrl, chat("hello"), { headers: { "x-stainless-lang": "js" } });
    expect(seen.status).toBe(200);
    expect(contentOf(seen)).toBe("hi");
    expect(seen.headers.get("x-request-id")).toBe("r1");
    const [asked] = server.seen;
    expect(asked?.url).toBe("/base/v1/chat/completions?api-version=2");
    expect(asked?.headers.authorization).toBe(`Bearer ${UPSTREAM_KEY}`);
    expect(JSON.parse(asked?.body ?? "")).toEqual(chat("hello"));
    expect((await recording.finish()).calls).toHaveLength(1);
  });

  it("lets in only its own run, its own key and the endpoints it knows", async () => {
    const server = await upstream(counting());
    const { proxy, finish } = await recordFrom(server.url);
    const refused = async (base: string, options = {}) => {
      const seen = await ask(base, chat("x"), options);
      return [seen.status, JSON.parse(seen.text).error.code];
    };
    expect(await refused(proxy.baseUrl, { key: "sk-other" })).toEqual([401, "OTHER_KEY"]);
    expect(await refused(proxy.baseUrl.replace("/r/test", "/r/other"))).toEqual([404, "OTHER_RUN"]);
    expect(await refused(proxy.baseUrl, { path: "/files" })).toEqual([404, "NO_ROUTE"]);
    expect(await refused(proxy.baseUrl, { path: "/../../etc/chat/completions" })).toEqual([404, "NO_ROUTE"]);
    expect(proxy.refusals).toEqual({ otherKey: 1, otherRun: 1, otherPath: 2 });
    expect(server.seen).toHaveLength(0);
    expect((await finish()).calls).toHaveLength(0);
  });

  it("tells agents apart by URL, else by key, else by system prompt", async () => {
    const server = await upstream((_, response) => json(response, completion("ok")));
    const { proxy, finish } = await recordFrom(server.url);
    const prompted = (prompt: string) => ({ model: "m", messages: [{ role: "system", content: prompt }] });
    await ask(agentUrl(proxy, "the planner"), chat("a"));
    await ask(proxy.baseUrl, chat("a"), { key: `${TOKEN}.solver` });
    await ask(proxy.keyedBaseUrl, chat("a"), { key: "sk-my-own-key-of-agent-three" });
    await ask(proxy.baseUrl, prompted("You are A. It is 2025-01-01T10:00:00Z."));
    await ask(proxy.baseUrl, prompted("You are A. It is 2025-06-30T23:59:59Z."));
    await ask(proxy.baseUrl, prompted("You are B."));
    await ask(proxy.baseUrl, { model: "m", instructions: "You are B.", input: "x" }, { path: "/responses" });
    await ask(proxy.baseUrl, chat("a"));
    const { calls } = await finish();
    const lanes = calls.map(({ lane }) => lane);
    expect(calls.map(({ laneBy }) => laneBy)).toEqual([
      "url",
      "key",
      "key",
      "prompt",
      "prompt",
      "prompt",
      "prompt",
      "unnamed",
    ]);
    expect(lanes.slice(0, 2)).toEqual(["the planner", "solver"]);
    expect(lanes[2]).toMatch(/^key-[0-9a-f]{8}$/u);
    expect(lanes[3]).toBe(lanes[4]);
    expect(lanes[5]).not.toBe(lanes[3]);
    expect(lanes[6]).toBe(lanes[5]);
  });

  it("passes HTTP errors through with their status, body and Retry-After", async () => {
    const error = JSON.stringify({ error: { message: "slow down" } });
    const server = await upstream((_, response) => json(response, error, 429, { "retry-after": "7" }));
    const { proxy, finish } = await recordFrom(server.url);
    const seen = await ask(proxy.baseUrl, chat("x"));
    expect([seen.status, seen.text, seen.headers.get("retry-after")]).toEqual([429, error, "7"]);
    expect(foldRetries((await finish()).calls)).toMatchObject({ calls: [], failed: [{ response: { status: 429 } }] });
  });

  it("says when the upstream cannot be reached, hangs, or redirects, and goes nowhere else", async () => {
    const closed = await startServer(() => {});
    await closed.close();
    const gone = await recordFrom(closed.url);
    const unreachable = await ask(gone.proxy.baseUrl, chat("x"));
    expect([unreachable.status, JSON.parse(unreachable.text).error.code]).toEqual([502, "MODEL_UNREACHABLE"]);
    expect((await gone.finish()).calls[0]?.response.outcome).toBe("unreachable");

    const elsewhere = await upstream((_, response) => json(response, completion("stolen")));
    const server = await upstream(({ url }, response) => {
      if (url.includes("redirect")) response.writeHead(307, { location: elsewhere.url }).end();
    });
    const away = await recordFrom(`${server.url}/redirect`);
    expect((await ask(away.proxy.baseUrl, chat("x"))).status).toBe(502);
    expect(elsewhere.seen).toHaveLength(0);
    await away.finish();
    const hanging = await recordFrom(server.url, { totalMs: 50 });
    const late = await ask(hanging.proxy.baseUrl, chat("x"));
    expect([late.status, JSON.parse(late.text).error.code]).toEqual([504, "MODEL_TIMEOUT"]);
    await hanging.finish();
  });

  it.each([
    ["gzip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
  ] as const)(
    "reads %s both ways: requests reach the upstream plain, answers the client and the tape",
    async (name, press) => {
      const server = await upstream((_, response) => {
        response.writeHead(200, { "content-type": "application/json", "content-encoding": name });
        response.end(press(completion("compressed")));
      });
      const { proxy, finish } = await recordFrom(server.url);
      const seen = await ask(proxy.baseUrl, press(JSON.stringify(chat("hello"))), {
        headers: { "content-encoding": name },
      });
      expect(contentOf(seen)).toBe("compressed");
      expect(seen.headers.get("content-encoding")).toBeNull();
      expect(JSON.parse(server.seen[0]?.body ?? "")).toEqual(chat("hello"));
      const tape = await finish();
      expect(tape.bodies.get(tape.calls[0]!.response.body).toString()).toBe(completion("compressed"));
    },
  );

  it("carries bodies of megabytes both ways and replays them byte for byte", async () => {
    const large = "é".repeat(1_000_000);
    const server = await upstream(({ body }, response) =>
      json(response, completion(JSON.parse(body).messages[0].content)),
    );
    const { proxy, finish } = await recordFrom(server.url);
    const seen = await ask(proxy.baseUrl, chat(large));
    expect(contentOf(seen)).toBe(large);
    const replay = await replaying(await finish());
    expect((await ask(replay.proxy.baseUrl, chat(large))).text).toBe(seen.text);
  });

  it("reads from the upstream no faster than the client does", async () => {
    const piece = Buffer.alloc(256 * 1024, "x");
    const total = 64 * piece.length; // more than the sockets between them hold
    const server = await upstream((_, response) => {
      response.writeHead(200, { "content-type": "text/plain" });
      let sent = 0;
      const write = (): void => {
        for (; sent < total; sent += piece.length) {
          if (response.write(piece)) continue;
          sent += piece.length;
          response.once("drain", write);
          return;
        }
        response.end();
      };
      write();
    });
    const origin = createUpstream({ base: new URL(server.url) });
    const received: number[] = [];
    let takes = false;
    let goOn: () => void = () => {};
    let ended: () => void = () => {};
    const blocked = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const over = new Promise<void>((resolve) => {
      ended = resolve;
    });
    let drained: () => void = () => {};
    const port: AnswerPort = {
      replay: () => {},
      refuse: () => {},
      unreachable: () => {},
      start: () => {},
      piece(bytes) {
        received.push(bytes.length);
        if (!takes) goOn();
        return takes;
      },
      onceDrained(proceed) {
        drained = proceed;
      },
      end: () => ended(),
      breakOff: () => ended(),
      onceClosed: () => {},
      isGone: false,
    };
    const request = {
      endpoint: "chat/completions",
      path: "/x",
      query: "",
      headers: {},
      body: Buffer.from("{}"),
    } as const;
    const call = { ...request, lane: { name: "a", by: "unnamed" }, retry: 0 } as const;
    const log = createCallLog({ redact: (text) => text });
    passThrough(origin, log, log.begin(call), port);
    await blocked;
    // Both ends are in this process: what would come comes in these turns.
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(received).toHaveLength(1);
    takes = true;
    drained();
    await over;
    expect(received.reduce((sum, length) => sum + length, 0)).toBe(total);
    await origin.close();
  });

  it("puts an answer on tape as cut when the upstream dies in the middle, and cuts it again in the replay", async () => {
    const [first = "", second = ""] = eventsOf(SCENARIOS.text, false);
    const server = await upstream((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(first);
      response.write(second.slice(0, 10), () => setImmediate(() => response.destroy()));
    });
    const { proxy, finish } = await recordFrom(server.url);
    await expect(ask(proxy.baseUrl, chat("x"))).rejects.toThrow();
    const tape = await finish();
    expect(tape.calls[0]?.response.outcome).toBe("cut");
    expect(tape.bodies.get(tape.calls[0]!.response.body).toString()).toBe(first + second.slice(0, 10));
    const replay = await replaying(tape);
    await expect(ask(replay.proxy.baseUrl, chat("x"))).rejects.toThrow();
    expect(replay.levels.L0).toBe(1);
  });

  it("drops the upstream call when the client leaves, and folds its retry", async () => {
    let left: () => void = () => {};
    const upstreamLeft = new Promise<void>((resolve) => {
      left = resolve;
    });
    let calls = 0;
    const server = await upstream((_, response) => {
      if (calls++ > 0) return json(response, completion("second try"));
      response.on("close", left);
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("data: {}\n\n");
    });
    const { proxy, finish } = await recordFrom(server.url);
    const leaving = new AbortController();
    const first = ask(proxy.baseUrl, chat("x"), { signal: leaving.signal });
    await server.arrived(1);
    leaving.abort();
    await expect(first).rejects.toThrow();
    await upstreamLeft;
    expect(contentOf(await ask(proxy.baseUrl, chat("x")))).toBe("second try");
    const tape = await finish();
    expect(tape.calls.map(({ response }) => response.outcome)).toEqual(["aborted", "complete"]);
    const replay = await replaying(tape);
    expect(contentOf(await ask(replay.proxy.baseUrl, chat("x")))).toBe("second try");
    expect(replay.unplayed).toBe(0);
  });

  it("keeps no secret on tape: headers, query, body fields, keys by their look, nested JSON, streams", async () => {
    const secrets = {
      key: "my-password-1234567",
      look: `sk-${"a1B2".repeat(10)}`,
      nested: "nested-secret-value-9",
      query: "query-secret-value-77",
      cookie: "cookie-value-123456",
    };
    const server = await upstream((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream", "set-cookie": secrets.cookie });
      for (const piece of [secrets.look.slice(0, 9), secrets.look.slice(9)]) {
        response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: piece } }] })}\n\n`);
      }
      response.end(`data: ${JSON.stringify({ echo: `Bearer ${UPSTREAM_KEY}` })}\n\n`);
    });
    const recording = await recordFrom(server.url);
    const body = chat(`my key is ${secrets.look}`, {
      api_key: secrets.key,
      tool: JSON.stringify({ password: secrets.nested, max_tokens: 7 }),
      max_tokens: 9,
    });
    const asking = (base: string) =>
      ask(base, body, {
        path: `/chat/completions?api-key=${secrets.query}&v=1`,
        headers: { cookie: secrets.cookie, "x-api-key": secrets.key },
      });
    const seen = await asking(recording.proxy.baseUrl);
    expect(seen.text).toContain(UPSTREAM_KEY); // the client still sees what the upstream said
    const tape = await recording.finish();
    const onDisk = ["tape.jsonl", "bodies.jsonl"]
      .map((name) => readFileSync(join(recording.folder, name), "utf8"))
      .join();
    for (const secret of [...Object.values(secrets), TOKEN, UPSTREAM_KEY]) expect(onDisk).not.toContain(secret);
    expect(onDisk).toContain("max_tokens");
    expect(validateTape(recording.folder).faults).toEqual([]);
    // The same request, secrets and all, finds its recording.
    const replay = await replaying(tape);
    expect((await asking(replay.proxy.baseUrl)).status).toBe(200);
    expect(replay.levels.L0).toBe(1);
  });
});

describe("the replaying proxy", () => {
  it("replays every scenario, streamed chunk for chunk and whole byte for byte, with no upstream at all", async () => {
    const server = await startOpenAIServer();
    const recording = await recordFrom(`${server.url}/v1`);
    const bodies = Object.keys(SCENARIOS).flatMap((name) => [
      chat(`say: ${name}`),
      chat(`say: ${name}`, { stream: true, stream_options: { include_usage: true } }),
    ]);
    const live = [];
    for (const body of bodies) live.push(await ask(recording.proxy.baseUrl, body));
    await server.close();
    const tape = await recording.finish();
    const replay = await replaying(tape);
    for (const [at, body] of bodies.entries()) {
      const again = await ask(replay.proxy.baseUrl, body);
      expect(again.text).toBe(live[at]?.text);
      expect(again.status).toBe(live[at]?.status);
      expect(again.headers.get("content-type")).toBe(live[at]?.headers.get("content-type"));
    }
    expect(replay).toMatchObject({ liveCalls: 0, unplayed: 0, levels: { L0: bodies.length, L1: 0, L2: 0 } });
  });

  it("keeps the pieces of a stream as the upstream cut them, in the middle of characters too", async () => {
    const bytes = Buffer.from('data: {"choices":[{"index":0,"delta":{"content":"naïve ✓"}}]}\n\ndata: [DONE]\n\n');
    const cuts = [0, 7, 54, 59, 60, bytes.length];
    const pieces = cuts.slice(1).map((end, at) => bytes.subarray(cuts[at], end));
    const server = await upstream((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const next = (at: number): void => {
        const piece = pieces[at];
        if (piece === undefined) response.end();
        else response.write(piece, () => setImmediate(next, at + 1));
      };
      next(0);
    });
    const { proxy, finish } = await recordFrom(server.url);
    await ask(proxy.baseUrl, chat("x", { stream: true }));
    const tape = await finish();
    expect(tape.calls[0]?.response.chunks).toEqual(pieces.map(({ length }) => length));
    const replay = await replaying(tape);
    expect(await httpChunks(replay.proxy.baseUrl, chat("x", { stream: true }))).toEqual(
      pieces.map(({ length }) => length),
    );
  });

  const recorded = async (contents: readonly string[], agent = "a"): Promise<TapeFolder> => {
    const server = await upstream(counting());
    const { proxy, finish } = await recordFrom(server.url);
    for (const content of contents) await ask(agentUrl(proxy, agent), chat(content));
    return finish();
  };

  it("answers the same question in the recorded order, at once or one after the other", async () => {
    const replay = await replaying(await recorded(["same", "same", "other", "same"]));
    const url = agentUrl(replay.proxy, "a");
    const first = await ask(url, chat("same"));
    expect(contentOf(first)).toBe("same#0");
    const rest = await Promise.all(["other", "same", "same"].map((content) => ask(url, chat(content))));
    expect(rest.map(contentOf).sort()).toEqual(["other#2", "same#1", "same#3"]);
    expect(replay.unplayed).toBe(0);
  });

  it("matches whatever the order of the body's fields", async () => {
    const replay = await replaying(await recorded(["x"]));
    const body = `{ "messages": [ {"content": "x", "role": "user"} ],\n "model": "m" }`;
    expect(contentOf(await ask(agentUrl(replay.proxy, "a"), body))).toBe("x#0");
    expect(replay.levels).toEqual({ L0: 1, L1: 0, L2: 0 });
  });

  it("stops at a changed question with a readable difference, which no client retries, and stays stopped", async () => {
    const stops: string[] = [];
    const replay = await replaying(await recorded(["How many apples?", "Thanks."]), {
      onStopped: ({ code }) => stops.push(code),
    });
    const url = agentUrl(replay.proxy, "a");
    const seen = await ask(url, chat("How many pears?"));
    expect(seen.status).toBe(400);
    expect(seen.headers.get("x-should-retry")).toBe("false");
    const { error } = JSON.parse(seen.text);
    expect(error.code).toBe("REPLAY_DIVERGED");
    expect(error.message).toContain("first difference at messages[0].content, character 9");
    expect(error.message).toContain("recorded: How many apples?");
    expect(error.message).toContain("asked:    How many pears?");
    expect((await ask(url, chat("Thanks."))).status).toBe(400);
    expect(stops).toEqual(["REPLAY_DIVERGED"]);
    expect(replay.liveCalls).toBe(0);
  });

  it("says when the program asks for more than the tape holds", async () => {
    const replay = await replaying(await recorded(["x"]));
    await ask(agentUrl(replay.proxy, "a"), chat("x"));
    const more = await ask(agentUrl(replay.proxy, "a"), chat("y"));
    expect(JSON.parse(more.text).error).toMatchObject({ code: "TAPE_EXHAUSTED" });
  });

  it("binds new ids to recorded ones and rewrites recorded answers, in streams where an id is cut in two", async () => {
    const OLD = "11111111-2222-4333-8444-555555555555";
    const NEW = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";
    const server = await upstream(({ body }, response) => {
      if (JSON.parse(body).stream !== true) {
        const call = {
          id: "c1",
          type: "function",
          function: { name: "assign", arguments: JSON.stringify({ worker: OLD }) },
        };
        json(response, JSON.stringify({ choices: [{ index: 0, message: { content: null, tool_calls: [call] } }] }));
        return;
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const piece of [`to ${OLD.slice(0, 5)}`, OLD.slice(5, 30), `${OLD.slice(30)}.`]) {
        response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: piece } }] })}\n\n`);
      }
      response.end("data: [DONE]\n\n");
    });
    const { proxy, finish } = await recordFrom(server.url);
    const question = (id: string) => chat(`Workers:\n${id}\nWho?`);
    const follow = (id: string) => chat(`Asked ${id} at 2025-01-01 10:00:00`, { stream: true });
    await ask(proxy.baseUrl, question(OLD));
    await ask(proxy.baseUrl, follow(OLD));
    const replay = await replaying(await finish());
    const answer = await ask(replay.proxy.baseUrl, question(NEW));
    expect(JSON.parse(answer.text).choices[0].message.tool_calls[0].function.arguments).toBe(`{"worker":"${NEW}"}`);
    const streamed = await ask(replay.proxy.baseUrl, {
      ...follow(NEW),
      messages: [{ role: "user", content: `Asked ${NEW} at 2031-12-31 23:59:59` }],
    });
    const said = [...streamed.text.matchAll(/"content":"([^"]*)"/gu)].map(([, piece]) => piece).join("");
    expect(said).toBe(`to ${NEW}.`);
    expect(streamed.text.match(/data: /gu)).toHaveLength(4);
    expect(replay.levels).toEqual({ L0: 0, L1: 2, L2: 0 });
  });

  it("matches by position only when told to, and only what is alike", async () => {
    const tape = await recorded(["Please count the red apples in the first basket and tell me the number."]);
    const alike = chat("Please count the red apples in the first basket and tell me their number.");
    const strict = await replaying(tape);
    expect((await ask(agentUrl(strict.proxy, "a"), alike)).status).toBe(400);
    const lenient = await replaying(tape, { similarityFloor: 0.9 });
    expect((await ask(agentUrl(lenient.proxy, "a"), alike)).status).toBe(200);
    expect(lenient.levels).toEqual({ L0: 0, L1: 0, L2: 1 });
    const other = await replaying(tape, { similarityFloor: 0.9 });
    expect((await ask(agentUrl(other.proxy, "a"), chat("Good morning."))).status).toBe(400);
  });

  it("folds retries: failures are not replayed, and a retry of the replay's client gets the same answer again", async () => {
    let n = 0;
    const server = await upstream((_, response) => {
      n++;
      if (n === 1) json(response, "{}", 429);
      else if (n === 2) json(response, "{}", 500);
      else json(response, completion(`answer ${n}`));
    });
    const { proxy, finish } = await recordFrom(server.url);
    expect((await ask(proxy.baseUrl, chat("x"))).status).toBe(429);
    expect((await ask(proxy.baseUrl, chat("x"))).status).toBe(500); // a client that marks no retries
    expect((await ask(proxy.baseUrl, chat("x"), { headers: { "x-stainless-retry-count": "2" } })).status).toBe(200);
    expect(contentOf(await ask(proxy.baseUrl, chat("x")))).toBe("answer 4"); // the same question, meant anew
    const tape = await finish();
    expect(showTape(tape).map(({ kept, call }) => [kept, call])).toEqual([
      ["retried", undefined],
      ["retried", undefined],
      ["yes", 0],
      ["yes", 1],
    ]);
    const replay = await replaying(tape);
    expect(contentOf(await ask(replay.proxy.baseUrl, chat("x")))).toBe("answer 3");
    const again = await ask(replay.proxy.baseUrl, chat("x"), { headers: { "x-stainless-retry-count": "1" } });
    expect(contentOf(again)).toBe("answer 3");
    expect(contentOf(await ask(replay.proxy.baseUrl, chat("x")))).toBe("answer 4");
    expect(replay).toMatchObject({ unplayed: 0, stopped: undefined });
  });

  it("gives a recording back when the replay's client leaves before it has all of it", async () => {
    const large = "x".repeat(16_000_000);
    const server = await upstream((_, response) => json(response, completion(large)));
    const { proxy, finish } = await recordFrom(server.url);
    await ask(proxy.baseUrl, chat("x"));
    const replay = await replaying(await finish());
    const leaving = new AbortController();
    const response = await fetch(`${replay.proxy.baseUrl}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}` },
      body: JSON.stringify(chat("x")),
      signal: leaving.signal,
    });
    expect(response.status).toBe(200);
    expect(replay.unplayed).toBe(0);
    leaving.abort();
    await expect.poll(() => replay.unplayed).toBe(1);
    expect(contentOf(await ask(replay.proxy.baseUrl, chat("x")))).toBe(large);
    expect(replay.unplayed).toBe(0);
  });

  it("never replays a failure that ended the recorded call, and says so", async () => {
    const server = await upstream((_, response) => json(response, "{}", 503));
    const { proxy, finish } = await recordFrom(server.url);
    await ask(proxy.baseUrl, chat("x"));
    const replay = await replaying(await finish());
    const seen = await ask(replay.proxy.baseUrl, chat("x"));
    expect(seen.status).toBe(400);
    expect(JSON.parse(seen.text).error.message).toContain("ended in HTTP 503 when it was recorded");
  });

  it("answers GET models from the tape, as often as asked, and counts it as no call", async () => {
    const list = JSON.stringify({ object: "list", data: [{ id: "m" }] });
    const server = await upstream(({ url }, response) =>
      json(response, url.endsWith("/models") ? list : completion("x")),
    );
    const { proxy, finish } = await recordFrom(server.url);
    const models = (base: string) =>
      fetch(`${base}/models`, { headers: { authorization: `Bearer ${TOKEN}` } }).then((response) => response.text());
    expect(await models(proxy.baseUrl)).toBe(list);
    await ask(proxy.baseUrl, chat("x"));
    const replay = await replaying(await finish());
    expect([await models(replay.proxy.baseUrl), await models(replay.proxy.baseUrl)]).toEqual([list, list]);
    expect(replay.unplayed).toBe(1);
  });

  it("replays completions, responses and embeddings as well", async () => {
    const server = await upstream(({ url }, response) => json(response, JSON.stringify({ at: url })));
    const { proxy, finish } = await recordFrom(server.url);
    const paths = ["/completions", "/responses", "/embeddings"];
    for (const path of paths) await ask(proxy.baseUrl, { model: "m", input: "x" }, { path });
    const replay = await replaying(await finish());
    for (const path of paths.toReversed()) {
      expect((await ask(replay.proxy.baseUrl, { model: "m", input: "x" }, { path })).text).toBe(
        JSON.stringify({ at: path }),
      );
    }
  });
});

describe("the replaying proxy with a cut", () => {
  const conversation = async (stream = false) => {
    const server = await upstream(({ body }, response) => {
      const { messages } = JSON.parse(body);
      const said = `live:${messages.at(-1).content}`;
      if (!stream) return json(response, completion(said));
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(
        `data: ${JSON.stringify({ id: "s1", model: "m", choices: [{ index: 0, delta: { content: said } }] })}\n\n`,
      );
      response.end("data: [DONE]\n\n");
    });
    const recording = await recordFrom(server.url);
    for (const content of ["one", "two", "three"])
      await ask(agentUrl(recording.proxy, "a"), chat(content, stream ? { stream } : {}));
    const tape = await recording.finish();
    return { server, tape, asked: server.seen.length };
  };

  it("answers from tape before it, with the action at it, live after it", async () => {
    const { server, tape, asked } = await conversation();
    const replay = await replaying(tape, { cut: { at: 1, action: parseAction("TWO\n") }, upstreamUrl: server.url });
    const url = agentUrl(replay.proxy, "a");
    expect(contentOf(await ask(url, chat("one")))).toBe("live:one");
    const changed = await ask(url, chat("two"));
    expect(contentOf(changed)).toBe("TWO");
    expect(JSON.parse(changed.text).usage.prompt_tokens).toBe(3);
    expect(server.seen).toHaveLength(asked);
    expect(contentOf(await ask(url, chat("something new after TWO")))).toBe("live:something new after TWO");
    expect(replay).toMatchObject({ liveCalls: 1, actions: 1, unplayed: 0, stopped: undefined });
  });

  it("puts a text, or a whole JSON answer with tool calls, into a stream as a valid stream", async () => {
    const { server, tape } = await conversation(true);
    const at1 = async (action: string): Promise<unknown[]> => {
      const replay = await replaying(tape, { cut: { at: 1, action: parseAction(action) }, upstreamUrl: server.url });
      const url = agentUrl(replay.proxy, "a");
      await ask(url, chat("one", { stream: true }));
      const seen = await ask(url, chat("two", { stream: true }));
      expect(seen.headers.get("content-type")).toContain("text/event-stream");
      expect(seen.text.endsWith("data: [DONE]\n\n")).toBe(true);
      return [...seen.text.matchAll(/^data: (\{.*)$/gmu)].map(([, data]) => JSON.parse(data ?? ""));
    };
    const said = (events: unknown[]): string =>
      (events as { choices: { delta: { content?: string } }[] }[])
        .map(({ choices }) => choices[0]?.delta.content ?? "")
        .join("");
    const text = await at1("the corrected action");
    expect(said(text)).toBe("the corrected action");
    expect(text.length).toBeGreaterThan(3);
    expect(text[0]).toMatchObject({ id: "s1", model: "m", object: "chat.completion.chunk" });
    const call = { id: "c1", type: "function", function: { name: "f", arguments: "{}" } };
    const message = { role: "assistant", content: null, tool_calls: [call] };
    const tools = await at1(JSON.stringify({ id: "x", choices: [{ index: 0, message, finish_reason: "tool_calls" }] }));
    expect(tools).toContainEqual(
      expect.objectContaining({
        choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...call }] }, finish_reason: null }],
      }),
    );
  });

  it("is never live before the cut: a changed question there stops it", async () => {
    const { server, tape, asked } = await conversation();
    const replay = await replaying(tape, { cut: { at: 2 }, upstreamUrl: server.url });
    expect((await ask(agentUrl(replay.proxy, "a"), chat("uno"))).status).toBe(400);
    expect(server.seen).toHaveLength(asked);
    expect(replay.stopped?.code).toBe("REPLAY_DIVERGED");
  });

  it("holds what belongs after the cut until every call before it was asked", async () => {
    const server = await upstream(counting());
    const recording = await recordFrom(server.url);
    for (const agent of ["a", "b", "a", "b"]) await ask(agentUrl(recording.proxy, agent), chat(`from ${agent}`));
    const tape = await recording.finish();
    const replay = await replaying(tape, { cut: { at: 3 }, upstreamUrl: server.url });
    const [a, b] = [agentUrl(replay.proxy, "a"), agentUrl(replay.proxy, "b")];
    await ask(b, chat("from b"));
    const early = ask(b, chat("from b")); // call 3, before agent a began
    expect(contentOf(await ask(a, chat("from a")))).toBe("from a#0");
    expect(replay.liveCalls).toBe(0);
    expect(contentOf(await ask(a, chat("from a")))).toBe("from a#2");
    expect(contentOf(await early)).toBe("from b#4");
    expect(replay.liveCalls).toBe(1);
  });

  it("gives up on a held request when the calls before it never come", async () => {
    const server = await upstream(counting());
    const recording = await recordFrom(server.url);
    for (const agent of ["a", "b"]) await ask(agentUrl(recording.proxy, agent), chat(`from ${agent}`));
    const tape = await recording.finish();
    const replay = await replaying(tape, { cut: { at: 1 }, upstreamUrl: server.url, holdMs: 20 });
    const seen = await ask(agentUrl(replay.proxy, "b"), chat("from b"));
    expect(JSON.parse(seen.text).error.code).toBe("REPLAY_DIVERGED");
    expect(replay.liveCalls).toBe(0);
  });

  it("stops at the live budget", async () => {
    const { server, tape, asked } = await conversation();
    const replay = await replaying(tape, { cut: { at: 0 }, upstreamUrl: server.url, maxLiveCalls: 2 });
    const url = agentUrl(replay.proxy, "a");
    const statuses = [];
    for (const content of ["1", "2", "3"]) statuses.push((await ask(url, chat(content))).status);
    expect(statuses).toEqual([200, 200, 400]);
    expect(server.seen).toHaveLength(asked + 2);
    expect(replay.stopped?.code).toBe("BUDGET_REACHED");
  });
});
