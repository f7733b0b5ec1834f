import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { parseAction } from "../../synth/proxy/action.ts";
import { validateTape } from "../../synth/tape/validate.ts";
import { parseTools, toolsOfReplay, variableOf } from "../../synth/tools/mapping.ts";
import { locationBelow } from "../../synth/tools/redirect.ts";
import { type Handler, type LoopbackServer, startServer } from "../models/loopback.ts";
import { ask, chat, completion, contentOf, TOKEN, tapeHeader } from "./proxy-setting.ts";
import { type ReplayWithTools, recordWithTools, replayWithTools } from "./tool-setting.ts";

let open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const server of open.reverse()) await server.close();
  open = [];
});

const serve = async (handler: Handler): Promise<LoopbackServer> => {
  const server = await startServer(handler);
  open.push(server);
  return server;
};
const replaying = async (...args: Parameters<typeof replayWithTools>): Promise<ReplayWithTools> => {
  const replay = await replayWithTools(...args);
  open.push(replay);
  return replay;
};
const model = () =>
  serve(({ body }, response) => void response.end(completion(`re: ${JSON.parse(body).messages.at(-1).content}`)));

/** Answers with its path and a running number, so that nobody can answer in its place. */
const counting = () => {
  let n = 0;
  return serve(({ method, url, body }, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ n: n++, method, url, body }));
  });
};

interface Got {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}
const get = async (url: string, init: RequestInit = {}): Promise<Got> => {
  const response = await fetch(url, init);
  return { status: response.status, headers: response.headers, text: await response.text() };
};
const errorCode = ({ text }: Got): string => JSON.parse(text).error.code;

describe("tools behind the proxy", () => {
  it("are recorded and replayed whatever they are asked and answer, without the tool", async () => {
    const binary = Buffer.from([0, 1, 254, 255, 128, 10]);
    const tool = await serve(({ method, url, body, headers }, response) => {
      if (url.startsWith("/api/missing")) response.writeHead(404, { "x-why": "no such page" }).end("not here");
      else if (url.startsWith("/api/broken")) response.writeHead(500).end("boom");
      else if (url.startsWith("/api/empty")) response.writeHead(204).end();
      else if (url.startsWith("/api/image")) response.writeHead(200, { "content-type": "image/png" }).end(binary);
      else response.end(`${method} ${url} ${headers["content-type"]} ${body}`);
    });
    const recording = await recordWithTools((await model()).url, { search: `${tool.url}/api` });
    const questions: [string, RequestInit?][] = [
      ["/q?text=apples%20%26%20pears"],
      [""],
      ["/form", { method: "POST", body: new URLSearchParams({ a: "1", b: "2" }) }],
      ["/json", { method: "PUT", body: '{"b":1,"a":[2]}', headers: { "content-type": "application/json" } }],
      ["/bytes", { method: "PATCH", body: binary }],
      ["/thing", { method: "DELETE" }],
      ["/missing"],
      ["/broken"],
      ["/empty", { method: "POST" }],
      ["/q", { method: "HEAD" }],
      ["/image"],
    ];
    const all = async (base: string): Promise<Got[]> => {
      const got: Got[] = [];
      for (const [path, init] of questions) got.push(await get(`${base}/search${path}`, init));
      return got;
    };
    const seen = await all(recording.proxy.toolsUrl);
    expect(seen.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200, 404, 500, 204, 200, 200]);
    expect(seen[0]?.text).toContain("GET /api/q?text=apples%20%26%20pears");
    expect(seen[1]?.text).toContain("GET /api ");
    expect(seen[2]?.text).toContain("application/x-www-form-urlencoded;charset=UTF-8 a=1&b=2");
    await tool.close();
    const tape = await recording.finish();
    expect(validateTape(recording.folder).faults).toEqual([]);
    expect(tape.calls).toEqual([]);
    const replay = await replaying(tape);
    const again = await all(replay.proxy.toolsUrl);
    expect(again.map(({ status, text }) => [status, text])).toEqual(seen.map(({ status, text }) => [status, text]));
    expect(again[6]?.headers.get("x-why")).toBe("no such page");
    expect(replay.tools).toMatchObject({
      unplayed: 0,
      liveExchanges: 0,
      levels: { L0: questions.length, L1: 0, L2: 0 },
    });
    const bytes = await fetch(`${(await replaying(tape)).proxy.toolsUrl}/search/image`);
    expect(Buffer.from(await bytes.arrayBuffer()).equals(binary)).toBe(true);
  });

  it("answer the same question in the recorded order: failures and what followed them are what the program saw", async () => {
    let n = 0;
    const tool = await serve((_, response) => {
      n++;
      response.writeHead(n === 1 ? 503 : 200).end(`answer ${n}`);
    });
    const recording = await recordWithTools((await model()).url, { search: tool.url });
    const thrice = async (base: string) => {
      const got: [number, string][] = [];
      for (let i = 0; i < 3; i++) {
        const { status, text } = await get(`${base}/search/q`);
        got.push([status, text]);
      }
      return got;
    };
    const expected = [
      [503, "answer 1"],
      [200, "answer 2"],
      [200, "answer 3"],
    ];
    expect(await thrice(recording.proxy.toolsUrl)).toEqual(expected);
    const replay = await replaying(await recording.finish());
    expect(await thrice(replay.proxy.toolsUrl)).toEqual(expected);
    expect(errorCode(await get(`${replay.proxy.toolsUrl}/search/q`))).toBe("TAPE_EXHAUSTED");
  });

  it("match with ids and clocks masked; an id bound in a call of a model is rewritten in a tool's answer", async () => {
    const OLD = "11111111-2222-4333-8444-555555555555";
    const NEW = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";
    const tool = await serve(({ url }, response) => void response.end(JSON.stringify({ order: url.slice(-36) })));
    const recording = await recordWithTools((await model()).url, { shop: tool.url });
    await ask(recording.proxy.baseUrl, chat(`order ${OLD}`));
    await get(`${recording.proxy.toolsUrl}/shop/at/2025-01-01T10:00:00Z/order/${OLD}`);
    const tape = await recording.finish();
    const replay = await replaying(tape);
    expect(contentOf(await ask(replay.proxy.baseUrl, chat(`order ${NEW}`)))).toBe(`re: order ${NEW}`);
    const { text } = await get(`${replay.proxy.toolsUrl}/shop/at/2031-12-31T23:59:59Z/order/${NEW}`);
    expect(JSON.parse(text)).toEqual({ order: NEW });
    expect(replay.tools.levels).toEqual({ L0: 0, L1: 1, L2: 0 });
    // Another id than the one bound is another order: the link is lost.
    const other = await replaying(tape);
    await ask(other.proxy.baseUrl, chat(`order ${NEW}`));
    const lost = await get(`${other.proxy.toolsUrl}/shop/at/2025-01-01T10:00:00Z/order/${NEW.replace("a", "b")}`);
    expect(errorCode(lost)).toBe("REPLAY_DIVERGED");
  });

  it("stop the whole replay at another question, with the first difference", async () => {
    const tool = await counting();
    const recording = await recordWithTools((await model()).url, { search: tool.url });
    const question = (text: string): RequestInit => ({ method: "POST", body: JSON.stringify({ query: { text } }) });
    await get(`${recording.proxy.toolsUrl}/search/q`, question("red apples"));
    await ask(recording.proxy.baseUrl, chat("x"));
    const replay = await replaying(await recording.finish());
    const seen = await get(`${replay.proxy.toolsUrl}/search/q`, question("red pears"));
    expect(seen.status).toBe(400);
    const { error } = JSON.parse(seen.text);
    expect(error.code).toBe("REPLAY_DIVERGED");
    expect(error.message).toContain("first difference at body.query.text, character 4");
    expect((await ask(replay.proxy.baseUrl, chat("x"))).status).toBe(400); // models too
    expect(replay.calls.stopped?.code).toBe("REPLAY_DIVERGED");
    expect(tool.seen).toHaveLength(1);
  });

  it("keep agents apart where the URL names them", async () => {
    const tool = await counting();
    const recording = await recordWithTools((await model()).url, { search: tool.url });
    const of = (base: string, agent: string) =>
      get(base.replace(/\/t$/u, `/a/${agent}/t/search/q`)).then(({ text }) => JSON.parse(text).n);
    expect([await of(recording.proxy.toolsUrl, "a"), await of(recording.proxy.toolsUrl, "b")]).toEqual([0, 1]);
    const tape = await recording.finish();
    expect(tape.tools.map(({ agent }) => agent)).toEqual(["a", "b"]);
    const replay = await replaying(tape);
    expect([await of(replay.proxy.toolsUrl, "b"), await of(replay.proxy.toolsUrl, "a")]).toEqual([1, 0]);
  });

  it("say when the tool cannot be reached or breaks off, and say it again in the replay", async () => {
    const gone = await startServer(() => {});
    await gone.close();
    const tool = await serve((_, response) => {
      response.writeHead(200, { "content-type": "text/plain" });
      response.write("half an ans", () => setImmediate(() => response.destroy()));
    });
    const recording = await recordWithTools((await model()).url, { gone: gone.url, half: tool.url });
    const both = async (base: string) => {
      const unreachable = await get(`${base}/gone/x`);
      await expect(get(`${base}/half/x`)).rejects.toThrow();
      return [unreachable.status, errorCode(unreachable)];
    };
    expect(await both(recording.proxy.toolsUrl)).toEqual([502, "TOOL_UNREACHABLE"]);
    const replay = await replaying(await recording.finish());
    expect(await both(replay.proxy.toolsUrl)).toEqual([502, "TOOL_UNREACHABLE"]);
    expect(replay.tools.unplayed).toBe(0);
  });

  it("and models that a program leaves at its very end are on tape as aborted", async () => {
    const stream: Handler = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("data: {}\n\n"); // and nothing after it
    };
    const [tool, models] = [await serve(stream), await serve(stream)];
    const recording = await recordWithTools(models.url, { search: tool.url });
    const leaving = new AbortController();
    const { signal } = leaving;
    const headers = { authorization: `Bearer ${TOKEN}` };
    const left = [
      await fetch(`${recording.proxy.toolsUrl}/search/q`, { signal }),
      await fetch(`${recording.proxy.baseUrl}/chat/completions`, { method: "POST", headers, body: "{}", signal }),
    ];
    for (const response of left) await response.body?.getReader().read();
    leaving.abort();
    const tape = await recording.finish();
    expect([...tape.tools, ...tape.calls].map(({ response }) => response.outcome)).toEqual(["aborted", "aborted"]);
  });

  it("are let in by the run's token only, and by name", async () => {
    const tool = await counting();
    const { proxy, finish } = await recordWithTools((await model()).url, { search: tool.url });
    const other = await get(`${proxy.toolsUrl.replace(TOKEN, "guessed")}/search/q`);
    expect([other.status, errorCode(other)]).toEqual([401, "OTHER_KEY"]);
    const unnamed = await get(`${proxy.toolsUrl}/calculator/q`);
    expect([unnamed.status, errorCode(unnamed)]).toEqual([404, "NO_TOOL"]);
    expect(unnamed.text).toContain("--tool calculator=URL");
    expect(tool.seen).toHaveLength(0);
    expect((await finish()).tools).toHaveLength(0);
  });

  it("follow redirects only within the tool, and stay behind the proxy", async () => {
    const elsewhere = await counting();
    const tool = await serve(({ url }, response) => {
      if (url === "/api/old/page?x=1") response.writeHead(302, { location: "/api/new?y=2" }).end();
      else if (url === "/api/away") response.writeHead(302, { location: `${elsewhere.url}/api/new` }).end();
      else if (url === "/api/up") response.writeHead(302, { location: "/admin" }).end();
      else response.end(`at ${url}`);
    });
    const recording = await recordWithTools((await model()).url, { search: `${tool.url}/api` });
    const inside = (base: string) => get(`${base}/search/old/page?x=1`).then(({ text }) => text);
    expect(await inside(recording.proxy.toolsUrl)).toBe("at /api/new?y=2");
    const away = await get(`${recording.proxy.toolsUrl}/search/away`);
    expect([away.status, errorCode(away)]).toEqual([502, "TOOL_UNREACHABLE"]);
    expect(away.text).toContain(elsewhere.url);
    expect((await get(`${recording.proxy.toolsUrl}/search/up`)).status).toBe(502);
    expect(elsewhere.seen).toHaveLength(0);
    await tool.close();
    const tape = await recording.finish();
    expect(tape.tools).toHaveLength(4);
    expect(await inside((await replaying(tape)).proxy.toolsUrl)).toBe("at /api/new?y=2");
  });

  it.each([
    ["", "/x", "search/x"],
    ["/", "/x", "../search/x"],
    ["/a", "b", "../search/b"],
    ["/a/b", "c?d#e", "../../search/a/c?d#e"],
    ["/a/b", "..", "../../search/"],
  ])("a redirect of %j to %j is %j from there", (path, location, expected) => {
    const relative = locationBelow(new URL("http://tool/"), { tool: "search", path }, location);
    expect(relative).toBe(expected);
    // As a client resolves it, it is the address below the tool that was meant.
    const followed = new URL(relative ?? "", `http://proxy/r/run.token/t/search${path}`);
    const meant = new URL(location, `http://tool${path}`);
    expect(followed.pathname).toBe(`/r/run.token/t/search${meant.pathname}`);
  });

  it("see their own keys, and the tape sees none", async () => {
    const secrets = {
      query: "query-secret-value-77",
      header: "tool-header-key-1234567",
      field: "field-secret-value-9",
      environment: "environment-key-abcdefgh",
    };
    const tool = await serve(({ headers, url, body }, response) => {
      response.setHeader("set-cookie", "cookie-value-123456");
      response.end(JSON.stringify({ auth: headers.authorization, url, body, password: "tool-password-1" }));
    });
    const env = { SEARCH_API_KEY: secrets.environment, TOKENIZERS_PARALLELISM: "a-long-value-that-is-no-secret" };
    const recording = await recordWithTools((await model()).url, { search: tool.url }, env);
    const asking = (base: string) =>
      get(`${base}/search/q?api_key=${secrets.query}&page=2`, {
        method: "POST",
        headers: { authorization: `Bearer ${secrets.header}`, cookie: "session-cookie-1" },
        body: JSON.stringify({
          secret: secrets.field,
          subscription: secrets.environment,
          page: env.TOKENIZERS_PARALLELISM,
        }),
      });
    const seen = await asking(recording.proxy.toolsUrl);
    for (const secret of Object.values(secrets)) expect(seen.text).toContain(secret);
    expect(tool.seen[0]?.headers.cookie).toBe("session-cookie-1");
    const tape = await recording.finish();
    const onDisk = ["tape.jsonl", "bodies.jsonl"]
      .map((name) => readFileSync(join(recording.folder, name), "utf8"))
      .join();
    for (const secret of [...Object.values(secrets), "tool-password-1", "cookie-1", "cookie-value", TOKEN]) {
      expect(onDisk).not.toContain(secret);
    }
    expect(onDisk).toContain(env.TOKENIZERS_PARALLELISM);
    expect(onDisk).toContain("page=2");
    const replay = await replaying(tape, { env });
    expect((await asking(replay.proxy.toolsUrl)).status).toBe(200);
    expect(replay.tools.levels.L0).toBe(1);
  });

  it("never get the run's own token", async () => {
    const tool = await counting();
    const { proxy, finish } = await recordWithTools((await model()).url, { search: tool.url });
    await get(`${proxy.toolsUrl}/search/q`, { headers: { authorization: `Bearer ${TOKEN}` } });
    expect(JSON.stringify(tool.seen[0])).not.toContain(TOKEN);
    await finish();
  });
});

describe("tools and a cut", () => {
  /** Model, tool, model, tool, model: the program's loop. */
  const conversation = async () => {
    const [tool, models] = [await counting(), await model()];
    const recording = await recordWithTools(models.url, { search: tool.url });
    const loop = async ({ baseUrl, toolsUrl }: { baseUrl: string; toolsUrl: string }, from = 0, to = 5) => {
      const said: unknown[] = [];
      for (let turn = from; turn < to; turn++) {
        if (turn % 2 === 0) said.push(contentOf(await ask(baseUrl, chat(`turn ${turn}`))));
        else said.push(JSON.parse((await get(`${toolsUrl}/search/q?turn=${turn}`)).text).n);
      }
      return said;
    };
    const recorded = await loop(recording.proxy);
    expect(recorded).toEqual(["re: turn 0", 0, "re: turn 2", 1, "re: turn 4"]);
    return { tape: await recording.finish(), tool, models, loop };
  };

  it("come from the tape before it and are live after it, as the calls are", async () => {
    const { tape, tool, models, loop } = await conversation();
    const setting = { upstreamUrl: models.url, tools: { search: tool.url } };
    const replay = await replaying(tape, { ...setting, cut: { at: 1, action: parseAction("CHANGED") } });
    expect(await loop(replay.proxy)).toEqual(["re: turn 0", 0, "CHANGED", 2, "re: turn 4"]);
    expect(replay.tools).toMatchObject({ liveExchanges: 1, unplayed: 0, levels: { L0: 1 } });
    expect(replay.calls).toMatchObject({ liveCalls: 1, unplayed: 0 });
    expect(tool.seen).toHaveLength(3);
    // The control: call 1 as recorded, and what it set off before call 2 was answered.
    const control = await replaying(tape, { ...setting, cut: { at: 2 } });
    expect(await loop(control.proxy)).toEqual(["re: turn 0", 0, "re: turn 2", 1, "re: turn 4"]);
    expect(control.tools.liveExchanges).toBe(0);
    expect(control.calls.liveCalls).toBe(1);
  });

  it("are never live before it: what belongs after it waits for calls and tools alike", async () => {
    const { tape, tool, models, loop } = await conversation();
    const setting = { upstreamUrl: models.url, tools: { search: tool.url } };
    const replay = await replaying(tape, { ...setting, cut: { at: 2 } });
    await loop(replay.proxy, 0, 2);
    await loop(replay.proxy, 3, 4);
    const early = get(`${replay.proxy.toolsUrl}/search/q?turn=99`); // the tool's part of the tape is done, call 1 is not
    const last = ask(replay.proxy.baseUrl, chat("turn 4"));
    expect(await loop(replay.proxy, 2, 3)).toEqual(["re: turn 2"]);
    expect(JSON.parse((await early).text).n).toBe(2);
    expect(contentOf(await last)).toBe("re: turn 4");
    expect(replay.calls.liveCalls).toBe(1);
    expect(tool.seen).toHaveLength(3);
    // The other way round: every call is from the tape, the tool of turn 3 is still to be asked.
    const other = await replaying(tape, { ...setting, cut: { at: 2 } });
    await loop(other.proxy, 0, 3);
    const call = ask(other.proxy.baseUrl, chat("turn 4"));
    const asked = models.seen.length;
    expect(await loop(other.proxy, 3, 4)).toEqual([1]);
    await call;
    expect(models.seen.length).toBe(asked + 1);
    const never = await replaying(tape, { ...setting, cut: { at: 1 }, holdMs: 20 });
    await loop(never.proxy, 1, 2);
    expect(errorCode(await get(`${never.proxy.toolsUrl}/search/q?turn=99`))).toBe("REPLAY_DIVERGED");
    expect(tool.seen).toHaveLength(3);
  });

  it("need an address to go live, and say so", async () => {
    const { tape, models, loop } = await conversation();
    const replay = await replaying(tape, { upstreamUrl: models.url, cut: { at: 1, action: parseAction("X") } });
    await loop(replay.proxy, 0, 3);
    const seen = await get(`${replay.proxy.toolsUrl}/search/q?turn=3`);
    expect(JSON.parse(seen.text).error).toMatchObject({ code: "USAGE", message: expect.stringContaining("--tool") });
  });
});

describe("--tool", () => {
  it("names a tool, its address and its variable", () => {
    expect(parseTools(["web-search=http://127.0.0.1:9/api?k=v", "calc:CALC_URL=https://calc.example/"])).toEqual([
      { name: "web-search", url: new URL("http://127.0.0.1:9/api?k=v"), variable: "ROOTSTEP_TOOL_WEB_SEARCH" },
      { name: "calc", url: new URL("https://calc.example/"), variable: "CALC_URL" },
    ]);
  });

  it.each([["search"], ["Search=http://h"], ["search=ftp://h"], ["search=http://user:pw@h/"], ["a/b=http://h"]])(
    "refuses %s",
    (text) => {
      expect(() => parseTools([text])).toThrow();
    },
  );

  it("refuses a tool named twice, and in a replay one that was not recorded", () => {
    const tools = parseTools(["a=http://h/1"]);
    expect(() => parseTools(["a=http://h/1", "a=http://h/2"])).toThrow(/twice/u);
    const header = { ...tapeHeader, tools: { b: { url: "http://h/b", variable: variableOf("b") } } };
    expect(() => toolsOfReplay(header, tools)).toThrow(/no tool a; it has: b/u);
    expect(toolsOfReplay(header, [])).toMatchObject([{ name: "b", url: new URL("http://h/b") }]);
    expect(toolsOfReplay(header, parseTools(["b=http://other/"]))).toMatchObject([{ url: new URL("http://other/") }]);
  });
});
