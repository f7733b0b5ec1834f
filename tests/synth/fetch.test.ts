import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { identityFaults } from "../../synth/proxy/identity.ts";
import { foldRetries } from "../../synth/tape/fold.ts";
import { loadTape, type TapeFolder } from "../../synth/tape/loader.ts";
import { validateTape } from "../../synth/tape/validate.ts";
import { type Handler, type LoopbackServer, startServer } from "../models/loopback.ts";
import { askVia, cutAt, ownFolder, recordInProcess, replayInProcess } from "./fetch-setting.ts";
import { chat, completion, contentOf } from "./proxy-setting.ts";

let open: LoopbackServer[] = [];
afterEach(async () => {
  for (const server of open) await server.close();
  open = [];
});

const upstream = async (handler: Handler): Promise<LoopbackServer & { base: string }> => {
  const server = await startServer(handler);
  open.push(server);
  return Object.assign(server, { base: `${server.url}/v1` });
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
/** The event loop has gone round: what was under way has come through. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const BASE = "http://model.test/v1";

describe("the recording fetch", () => {
  it("is the fetch it wraps for the client, key and all, and keeps what passed", async () => {
    const server = await upstream((_, response) => json(response, completion("hi"), 200, { "x-request-id": "r1" }));
    const recording = recordInProcess(server.base);
    const headers = { authorization: "Bearer sk-mine", "x-stainless-lang": "js" };
    const seen = await askVia(recording.fetch, server.base, chat("hello"), { headers });
    expect([seen.status, contentOf(seen), seen.headers.get("x-request-id")]).toEqual([200, "hi", "r1"]);
    expect(server.seen[0]).toMatchObject({
      url: "/v1/chat/completions",
      body: JSON.stringify(chat("hello")),
      headers: { authorization: "Bearer sk-mine", "x-stainless-lang": "js" },
    });
    const tape = recording.tape("42");
    expect(tape.header).toMatchObject({ upstream: server.base, run: "test" });
    expect(tape.calls).toMatchObject([{ endpoint: "chat/completions", lane: "agent", from: "live" }]);
    expect(tape.end).toMatchObject({ answer: "42", exitCode: 0, calls: 1 });
    expect(validateTape(recording.folder).faults).toEqual([]);
  });

  it("names a lane after the agent a fetch was made for, else after the system prompt", async () => {
    const server = await upstream((_, response) => json(response, completion("ok")));
    const recording = recordInProcess(server.base);
    await askVia(recording.forAgent("the planner"), server.base, chat("a"));
    await askVia(recording.fetch, server.base, { messages: [{ role: "system", content: "You are B." }] });
    await askVia(recording.fetch, server.base, chat("a"));
    expect(recording.tape().calls.map(({ lane, laneBy }) => [lane.slice(0, 11), laneBy])).toEqual([
      ["the planner", "wrapper"],
      [expect.stringMatching(/^prompt-/u), "prompt"],
      ["agent", "unnamed"],
    ]);
  });

  it("takes a Request, a URL, bytes and streams as a body, as fetch does", async () => {
    const server = await upstream(counting());
    const recording = recordInProcess(server.base);
    const url = `${server.base}/chat/completions`;
    const init = (content: string) => ({ method: "POST", body: JSON.stringify(chat(content)) });
    const bodies = [
      await recording.fetch(new Request(url, init("request"))),
      await recording.fetch(new URL(url), { method: "POST", body: new TextEncoder().encode(init("bytes").body) }),
      await recording.fetch(url, { method: "POST", body: new Blob([init("blob").body]) }),
    ].map(async (response) => JSON.parse(await response.text()).choices[0].message.content);
    expect(await Promise.all(bodies)).toEqual(["request#0", "bytes#1", "blob#2"]);
    expect(recording.tape().calls).toHaveLength(3);
  });

  it("asks nobody but its upstream, follows no redirect, and refuses what is no model call", async () => {
    const elsewhere = await upstream((_, response) => json(response, completion("stolen")));
    const server = await upstream((_, response) => json(response, "", 307, { location: `${elsewhere.base}/x` }));
    const recording = recordInProcess(server.base);
    const refused = async (base: string, path?: string) => {
      const seen = await askVia(recording.fetch, base, chat("x"), path === undefined ? {} : { path });
      return [seen.status, JSON.parse(seen.text).error.code, seen.headers.get("x-should-retry")];
    };
    expect(await refused(elsewhere.base)).toEqual([404, "OTHER_UPSTREAM", "false"]);
    expect(await refused(`${server.url}/v1beta`)).toEqual([404, "OTHER_UPSTREAM", "false"]);
    expect(await refused(server.base, "/files")).toEqual([404, "NO_ROUTE", "false"]);
    await expect(askVia(recording.fetch, server.base, chat("x"))).rejects.toMatchObject({ code: "MODEL_BAD_BODY" });
    expect(elsewhere.seen).toHaveLength(0);
  });

  it("lets the client see the error fetch would have thrown, and calls the call unreachable", async () => {
    const server = await upstream(counting());
    await server.close();
    const recording = recordInProcess(server.base);
    await expect(askVia(recording.fetch, server.base, chat("x"))).rejects.toThrow(new TypeError("fetch failed"));
    expect(foldRetries(recording.tape().calls).failed).toMatchObject([{ response: { outcome: "unreachable" } }]);
  });

  it("asks for plain pieces, and takes a compression off that comes all the same", async () => {
    const server = await upstream((_, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
      response.end(gzipSync(completion("compressed")));
    });
    const recording = recordInProcess(server.base);
    const headers = { "accept-encoding": "gzip, br" };
    const seen = await askVia(recording.fetch, server.base, chat("x"), { headers });
    expect(server.seen[0]?.headers["accept-encoding"]).toBe("identity");
    expect([contentOf(seen), seen.headers.get("content-encoding")]).toEqual(["compressed", null]);
    const tape = recording.tape();
    expect(tape.bodies.get(tape.calls[0]!.response.body).toString()).toBe(completion("compressed"));
  });

  it("reads from the upstream no faster than the client does", async () => {
    const piece = new Uint8Array(16 * 1024);
    let sent = 0;
    const source = new ReadableStream({
      pull: (controller) => {
        controller.enqueue(piece);
        if (++sent === 100) controller.close();
      },
    });
    const recording = recordInProcess(BASE, { fetch: async () => new Response(source) });
    const response = await recording.fetch(`${BASE}/chat/completions`, { method: "POST", body: "{}" });
    for (let round = 0; round < 20; round++) await turn();
    expect(sent).toBeLessThan(10); // 64 KB ahead of a reader that has read nothing
    expect((await response.arrayBuffer()).byteLength).toBe(100 * piece.length);
    expect(recording.tape().calls[0]?.response.chunks).toEqual(Array(100).fill(piece.length));
  });

  it("drops the upstream call when the client aborts, before the answer or in it, and folds the retry", async () => {
    let left = 0;
    let n = 0;
    const server = await upstream((_, response) => {
      if (++n === 3) return json(response, completion("third try"));
      response.on("close", () => left++);
      if (n === 2) response.writeHead(200, { "content-type": "text/event-stream" }).write("data: {}\n\n");
    });
    const recording = recordInProcess(server.base);
    const reason = new Error("changed my mind");
    for (const attempt of [1, 2]) {
      const leaving = new AbortController();
      const asked = askVia(recording.fetch, server.base, chat("x"), { signal: leaving.signal });
      await server.arrived(attempt);
      if (attempt === 2) await turn();
      leaving.abort(reason);
      await expect(asked).rejects.toBe(reason);
      await expect.poll(() => left).toBe(attempt);
    }
    expect(contentOf(await askVia(recording.fetch, server.base, chat("x")))).toBe("third try");
    const tape = recording.tape();
    expect(tape.calls.map(({ response }) => response.outcome)).toEqual(["aborted", "aborted", "complete"]);
    const replay = replayInProcess(tape);
    expect(contentOf(await askVia(replay.fetch, BASE, chat("x")))).toBe("third try");
    expect(replay.unplayed).toBe(0);
  });

  it("puts no call on tape whose signal had fired before it was made", async () => {
    const server = await upstream(counting());
    const recording = recordInProcess(server.base);
    const signal = AbortSignal.abort();
    await expect(askVia(recording.fetch, server.base, chat("x"), { signal })).rejects.toThrow();
    expect([recording.calls, server.seen.length]).toEqual([0, 0]);
    expect(() => recording.finish()).toThrow(expect.objectContaining({ code: "NO_CALLS" }));
    // And no empty tape stands in the way.
    const next = recordInProcess(server.base, { out: recording.folder });
    await askVia(next.fetch, server.base, chat("x"));
    next.finish();
    expect(loadTape(recording.folder).calls).toHaveLength(1);
  });

  it("puts an answer on tape as cut when the upstream dies in the middle, and cuts it again in the replay", async () => {
    const server = await upstream((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('data: {"a":', () => setImmediate(() => response.destroy()));
    });
    const recording = recordInProcess(server.base);
    await expect(askVia(recording.fetch, server.base, chat("x"))).rejects.toThrow("terminated");
    const tape = recording.tape();
    expect(tape.calls[0]?.response.outcome).toBe("cut");
    const replay = replayInProcess(tape);
    await expect(askVia(replay.fetch, BASE, chat("x"))).rejects.toThrow("terminated");
    expect(replay.levels.L0).toBe(1);
  });

  it("ends with calls under way put on tape as aborted, and refuses what comes after", async () => {
    const server = await upstream((_, response) => void response.writeHead(200).write("begun"));
    const recording = recordInProcess(server.base);
    const hanging = askVia(recording.fetch, server.base, chat("x"));
    await server.arrived(1);
    const tape = recording.tape();
    await expect(hanging).rejects.toMatchObject({ code: "USAGE" });
    expect(tape.calls.map(({ response }) => response.outcome)).toEqual(["aborted"]);
    expect(tape.end?.calls).toBe(1);
    await expect(askVia(recording.fetch, server.base, chat("y"))).rejects.toMatchObject({ code: "USAGE" });
    expect(server.seen).toHaveLength(1);
  });

  it("keeps no secret on tape: the client's key wherever it is echoed, headers, fields, keys by their look", async () => {
    const key = "my-very-own-key-123456789";
    const look = `sk-${"a1B2".repeat(10)}`;
    const server = await upstream(({ body, headers }, response) =>
      json(response, completion(`you sent ${body} with the key ${headers.authorization?.slice(7)}`)),
    );
    const recording = recordInProcess(server.base, { secrets: ["word-of-mine"] });
    const asking = (fetch: typeof globalThis.fetch, base: string) =>
      askVia(fetch, base, chat(`${look} word-of-mine`, { api_key: "field-secret-1" }), {
        headers: { authorization: `Bearer ${key}` },
      });
    expect(contentOf(await asking(recording.fetch, server.base))).toContain(key);
    const tape = recording.tape();
    const onDisk = ["tape.jsonl", "bodies.jsonl"]
      .map((name) => readFileSync(join(recording.folder, name), "utf8"))
      .join();
    for (const secret of [key, look, "field-secret-1", "word-of-mine"]) expect(onDisk).not.toContain(secret);
    const replay = replayInProcess(tape, { secrets: ["word-of-mine"] });
    expect((await asking(replay.fetch, BASE)).status).toBe(200);
    expect(replay.levels.L0).toBe(1);
  });
});

describe("the replaying fetch", () => {
  const recorded = async (contents: readonly string[], agent = "a"): Promise<TapeFolder> => {
    const server = await upstream(counting());
    const recording = recordInProcess(server.base);
    for (const content of contents) await askVia(recording.forAgent(agent), server.base, chat(content));
    return recording.tape("done");
  };

  it("gives the pieces of every body as they came, wherever they were cut", async () => {
    const text = 'data: {"choices":[{"index":0,"delta":{"content":"naïve ✓ 🙂"}}]}\n\ndata: [DONE]\n\n';
    const bytes = Buffer.from(text);
    const cuts = fc.uniqueArray(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(cuts, async (places) => {
        const ends = [...places.sort((a, b) => a - b), bytes.length];
        const pieces = ends.map((end, at) => new Uint8Array(bytes.subarray(ends[at - 1] ?? 0, end)));
        const headers = { "content-type": "text/event-stream" };
        const recording = recordInProcess(BASE, {
          fetch: async () => new Response(ReadableStream.from(pieces), { headers }),
        });
        const live = await askVia(recording.fetch, BASE, chat("x"));
        const replay = replayInProcess(recording.tape());
        const response = await replay.fetch(`${BASE}/chat/completions`, {
          method: "POST",
          body: JSON.stringify(chat("x")),
        });
        const again: number[] = [];
        for await (const piece of response.body ?? []) again.push(piece.length);
        expect(again).toEqual(pieces.map(({ length }) => length));
        expect(live.text).toBe(text);
        expect(response.headers.get("content-type")).toBe("text/event-stream");
      }),
      { seed: 7, numRuns: 40 },
    );
  });

  it("answers identical calls at once in the recorded order, and passes the identity gate", async () => {
    const replay = replayInProcess(await recorded(["same", "same", "other", "same"]));
    const ask = replay.forAgent("a");
    const seen = await Promise.all(
      ["other", "same", "same", "same"].map((content) => askVia(ask, BASE, chat(content))),
    );
    expect(seen.map(contentOf)).toEqual(["other#2", "same#0", "same#1", "same#3"]);
    expect(identityFaults(replay.finish({ answer: "done" }))).toEqual([]);
  });

  it("gives a retry that is marked as one the same answer again", async () => {
    const replay = replayInProcess(await recorded(["same", "same"]));
    const ask = (retry: number) =>
      askVia(replay.forAgent("a"), BASE, chat("same"), { headers: { "x-stainless-retry-count": String(retry) } });
    const seen = [await ask(0), await ask(1), await ask(0)];
    expect(seen.map(contentOf)).toEqual(["same#0", "same#0", "same#1"]);
    expect(replay.unplayed).toBe(0);
  });

  it("fails the gate with the reason where calls are missing or the answer differs", async () => {
    const tape = await recorded(["one", "two"]);
    const replay = replayInProcess(tape);
    await askVia(replay.forAgent("a"), BASE, chat("one"));
    const faults = identityFaults(replay.finish({ answer: "other" })).join("\n");
    expect(faults).toContain("1 calls fewer");
    expect(faults).toContain("answer, character 0");
    const failing = replayInProcess(tape).finish({ answer: "done", failed: true });
    expect(identityFaults(failing).join("\n")).toContain("exit: recorded 0, now 1");
  });

  it("stops at a changed question with a readable difference, stays stopped, and asks nobody", async () => {
    const stops: string[] = [];
    const tape = await recorded(["How many apples?", "Thanks."]);
    const replay = replayInProcess(tape, { onStopped: ({ code }) => stops.push(code) });
    const ask = replay.forAgent("a");
    const seen = await askVia(ask, BASE, chat("How many pears?"));
    expect([seen.status, seen.headers.get("x-should-retry")]).toEqual([400, "false"]);
    const { error } = JSON.parse(seen.text);
    expect(error.code).toBe("REPLAY_DIVERGED");
    expect(error.message).toContain("recorded: How many apples?\n    asked:    How many pears?");
    expect((await askVia(ask, BASE, chat("Thanks."))).status).toBe(400);
    expect(stops).toEqual(["REPLAY_DIVERGED"]);
    expect(replay.stopped?.code).toBe("REPLAY_DIVERGED");
  });

  it("says when more is asked than the tape holds, and when a recorded failure is what was asked for", async () => {
    const replay = replayInProcess(await recorded(["x"]));
    await askVia(replay.forAgent("a"), BASE, chat("x"));
    const more = await askVia(replay.forAgent("a"), BASE, chat("y"));
    expect(JSON.parse(more.text).error.code).toBe("TAPE_EXHAUSTED");

    const server = await upstream((_, response) => json(response, "{}", 503));
    const recording = recordInProcess(server.base);
    await askVia(recording.fetch, server.base, chat("x"));
    const failed = await askVia(replayInProcess(recording.tape()).fetch, BASE, chat("x"));
    expect(JSON.parse(failed.text).error.message).toContain("ended in HTTP 503 when it was recorded");
  });

  it("matches at L1 with ids bound and rewritten in streams, at L2 only when told to", async () => {
    const [OLD, NEW] = ["11111111-2222-4333-8444-555555555555", "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"];
    const server = await upstream((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const piece of [`to ${OLD.slice(0, 5)}`, OLD.slice(5, 30), `${OLD.slice(30)}.`]) {
        response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: piece } }] })}\n\n`);
      }
      response.end("data: [DONE]\n\n");
    });
    const recording = recordInProcess(server.base);
    const about = (id: string, task: string) =>
      chat(`Worker ${id} at ${task}: count the red apples and tell the number.`);
    await askVia(recording.fetch, server.base, about(OLD, "noon"));
    const tape = recording.tape();
    const replay = replayInProcess(tape);
    const seen = await askVia(replay.fetch, BASE, about(NEW, "noon"));
    expect([...seen.text.matchAll(/"content":"([^"]*)"/gu)].map(([, piece]) => piece).join("")).toBe(`to ${NEW}.`);
    expect(replay.levels).toEqual({ L0: 0, L1: 1, L2: 0 });
    expect((await askVia(replayInProcess(tape).fetch, BASE, about(OLD, "midnight"))).status).toBe(400);
    const lenient = replayInProcess(tape, { similarityFloor: 0.8 });
    expect((await askVia(lenient.fetch, BASE, about(OLD, "midnight"))).status).toBe(200);
    expect(lenient.levels.L2).toBe(1);
  });

  it("gives a recording back when the client drops a stream half-way, by abort or by cancel", async () => {
    const pieces = ["one", "two", "three"].map((word) => new TextEncoder().encode(`data: "${word}"\n\n`));
    const recording = recordInProcess(BASE, { fetch: async () => new Response(ReadableStream.from(pieces)) });
    await askVia(recording.fetch, BASE, chat("x"));
    const tape = recording.tape();
    for (const way of ["abort", "cancel"]) {
      const replay = replayInProcess(tape);
      const leaving = new AbortController();
      const init = { method: "POST", body: JSON.stringify(chat("x")), signal: leaving.signal };
      const response = await replay.fetch(`${BASE}/chat/completions`, init);
      const reader = response.body!.getReader();
      await reader.read();
      expect(replay.unplayed).toBe(0);
      if (way === "cancel") await reader.cancel();
      else {
        leaving.abort();
        await expect(reader.read()).rejects.toThrow("aborted");
      }
      expect(replay.unplayed).toBe(1);
      expect((await askVia(replay.fetch, BASE, chat("x"))).chunks).toHaveLength(3);
      expect(replay.unplayed).toBe(0);
    }
  });

  it("lets the client leave an answer that it left when recorded", async () => {
    const server = await upstream((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write("data: first\n\n"); // and nothing after it
    });
    const leaveAfterFirst = async (fetch: typeof globalThis.fetch) => {
      const leaving = new AbortController();
      const init = { method: "POST", body: JSON.stringify(chat("x")), signal: leaving.signal };
      const response = await fetch(`${server.base}/chat/completions`, init);
      const { value } = await response.body!.getReader().read();
      leaving.abort();
      return new TextDecoder().decode(value);
    };
    const recording = recordInProcess(server.base);
    await leaveAfterFirst(recording.fetch);
    const replay = replayInProcess(recording.tape());
    expect(await leaveAfterFirst(replay.fetch)).toBe("data: first\n\n");
    expect(identityFaults(replay.finish())).toEqual([]);
  });

  it("refuses a cut where there is no call", async () => {
    const tape = await recorded(["x", "y"]);
    expect(() => replayInProcess(tape, { cut: cutAt(3) })).toThrow(expect.objectContaining({ code: "USAGE" }));
    expect(() => replayInProcess(tape, { cut: cutAt(2, "z") })).toThrow("calls 0 to 1");
    expect(replayInProcess(tape, { cut: cutAt(2) }).unplayed).toBe(2);
  });
});

describe("the replaying fetch with a cut", () => {
  const conversation = async () => {
    const server = await upstream(counting());
    const recording = recordInProcess(server.base);
    for (const content of ["one", "two", "three"]) await askVia(recording.forAgent("a"), server.base, chat(content));
    return { server, tape: recording.tape(), asked: server.seen.length };
  };

  it("answers from tape before it, with the action at it, live after it, and records the rerun", async () => {
    const { server, tape, asked } = await conversation();
    const out = ownFolder("rerun");
    const replay = replayInProcess(tape, { cut: cutAt(1, "TWO"), liveUrl: server.base, out });
    const ask = (content: string) => askVia(replay.forAgent("a"), server.base, chat(content));
    expect(contentOf(await ask("one"))).toBe("one#0");
    expect(contentOf(await ask("two"))).toBe("TWO");
    expect(server.seen).toHaveLength(asked);
    expect(contentOf(await ask("after TWO"))).toBe("after TWO#3");
    expect(replay.finish({ answer: "x" })).toMatchObject({ recorded: 3, actions: 1, liveCalls: 1, unplayed: 0 });
    const rerun = loadTape(out);
    expect(rerun.calls.map(({ from }) => from)).toEqual(["tape", "action", "live"]);
    const third = replayInProcess(rerun);
    for (const content of ["one", "two", "after TWO"]) await askVia(third.forAgent("a"), BASE, chat(content));
    expect(identityFaults(third.finish({ answer: "x" }))).toEqual([]);
  });

  it("is never live before it, and not without a live fetch after it", async () => {
    const { server, tape, asked } = await conversation();
    const replay = replayInProcess(tape, { cut: cutAt(2), liveUrl: server.base });
    expect((await askVia(replay.forAgent("a"), server.base, chat("uno"))).status).toBe(400);
    expect(replay.stopped?.code).toBe("REPLAY_DIVERGED");
    const offline = replayInProcess(tape, { cut: cutAt(0) });
    const seen = await askVia(offline.forAgent("a"), server.base, chat("one"));
    expect(JSON.parse(seen.text).error).toMatchObject({ code: "USAGE" });
    expect(server.seen).toHaveLength(asked);
  });

  it("stops at the live budget", async () => {
    const { server, tape, asked } = await conversation();
    const replay = replayInProcess(tape, { cut: cutAt(0), liveUrl: server.base, maxLiveCalls: 2 });
    const statuses = [];
    for (const content of ["1", "2", "3"]) {
      statuses.push((await askVia(replay.forAgent("a"), server.base, chat(content))).status);
    }
    expect(statuses).toEqual([200, 200, 400]);
    expect(server.seen).toHaveLength(asked + 2);
    expect(replay.stopped?.code).toBe("BUDGET_REACHED");
  });

  it("holds what belongs after the cut until every call before it was asked; one that leaves is not asked for", async () => {
    const server = await upstream(counting());
    const recording = recordInProcess(server.base);
    for (const agent of ["a", "b", "a", "b"])
      await askVia(recording.forAgent(agent), server.base, chat(`from ${agent}`));
    const replay = replayInProcess(recording.tape(), { cut: cutAt(3), liveUrl: server.base });
    const ask = (agent: string, signal?: AbortSignal) =>
      askVia(replay.forAgent(agent), server.base, chat(`from ${agent}`), signal === undefined ? {} : { signal });
    await ask("b");
    const leaving = new AbortController();
    const impatient = ask("b", leaving.signal);
    const early = ask("b");
    leaving.abort();
    await expect(impatient).rejects.toThrow("aborted");
    expect(contentOf(await ask("a"))).toBe("from a#0");
    expect(replay.liveCalls).toBe(0);
    expect(contentOf(await ask("a"))).toBe("from a#2");
    expect(contentOf(await early)).toBe("from b#4");
    expect(replay.liveCalls).toBe(1);
  });

  it("gives up on a held request when the calls before it never come", async () => {
    const server = await upstream(counting());
    const recording = recordInProcess(server.base);
    for (const agent of ["a", "b"]) await askVia(recording.forAgent(agent), server.base, chat(`from ${agent}`));
    const replay = replayInProcess(recording.tape(), { cut: cutAt(1), liveUrl: server.base, holdMs: 20 });
    const seen = await askVia(replay.forAgent("b"), server.base, chat("from b"));
    expect(JSON.parse(seen.text).error.code).toBe("REPLAY_DIVERGED");
    expect(replay.liveCalls).toBe(0);
  });
});
