import type { ServerResponse } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { inspect } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { describeError, type ErrorCode, RootstepError } from "../../src/errors.ts";
import type { ChatModel } from "../../src/models/chat-model.ts";
import type { Timeouts } from "../../src/models/http-call.ts";
import { huggingFace } from "../../src/models/hugging-face.ts";
import { Secret } from "../../src/models/key.ts";
import { openAICompatible } from "../../src/models/openai-compatible.ts";
import { networkError } from "../../src/models/server-failures.ts";
import { type Handler, startServer } from "./loopback.ts";
import { eventsOf } from "./openai-server.ts";
import { MODEL, SCENARIOS } from "./scenarios.ts";

const KEY = "hf_secretKeyThatNothingMayShow42";
const apiKey = new Secret(KEY);
const NOW = Date.parse("2025-01-01T00:00:00Z");
const clock = { now: () => NOW, sleep: async () => {} };
const roomy: Timeouts = { connectMs: 20_000, firstByteMs: 20_000, idleMs: 20_000, totalMs: 20_000 };

interface Client {
  readonly name: string;
  readonly stream: boolean;
  make(url: string, timeouts?: Partial<Timeouts>): ChatModel;
}

const CLIENTS: Client[] = [true, false].flatMap((stream) => {
  const shared = (timeouts: Partial<Timeouts>) => ({
    model: MODEL,
    apiKey,
    stream,
    clock,
    largestBody: 100_000,
    timeouts: { ...roomy, ...timeouts },
  });
  return [
    {
      name: `OpenAI-compatible ${stream ? "streaming" : "in one piece"}`,
      stream,
      make: (url, timeouts = {}) => openAICompatible({ baseUrl: `${url}/v1`, ...shared(timeouts) }),
    },
    {
      name: `Hugging Face ${stream ? "streaming" : "in one piece"}`,
      stream,
      make: (url, timeouts = {}) => huggingFace({ endpointUrl: `${url}/v1`, ...shared(timeouts) }),
    },
  ];
});

/** The error of one call; checks what is true of every error of a model server. */
async function failure(model: ChatModel, url: string): Promise<RootstepError> {
  const error = await model.complete(SCENARIOS.text.request).then(
    () => expect.fail("the call succeeded"),
    (reason: unknown) => reason,
  );
  if (!(error instanceof RootstepError)) throw error;
  expect(error.where).toContain(url);
  expect(error.hint).not.toBe("");
  const deep = { depth: 10, showHidden: true };
  const texts = [error.message, error.stack ?? "", JSON.stringify(error), inspect(error, deep), describeError(error)];
  for (const text of texts) expect(text).not.toContain(KEY);
  return error;
}

interface Fault {
  readonly name: string;
  readonly code: ErrorCode;
  readonly what: RegExp;
  readonly answer: Handler;
  readonly timeouts?: Partial<Timeouts>;
  readonly retryable?: boolean;
  readonly retryAfterMs?: number;
  /** Only for clients that stream, or only for those that do not. */
  readonly only?: "stream" | "whole";
}

const json = (response: ServerResponse, status: number, value: unknown, headers: Record<string, string> = {}): void => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(value));
};
const text = (response: ServerResponse, status: number, type: string, body: string): void => {
  response.writeHead(status, { "content-type": type });
  response.end(body);
};
const eventStream = (response: ServerResponse, body: string): void => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(body);
};
const EVENTS = eventsOf(SCENARIOS.text, true);
const small = { firstByteMs: 80, idleMs: 80 };

const FAULTS: Fault[] = [
  {
    name: "hangs before any answer",
    code: "MODEL_TIMEOUT",
    what: /firstByteMs \(80 ms\)/,
    retryable: true,
    timeouts: small,
    answer: () => {},
  },
  {
    name: "hangs after the headers",
    code: "MODEL_TIMEOUT",
    what: /firstByteMs/,
    timeouts: small,
    answer: (_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.flushHeaders();
    },
  },
  {
    name: "hangs in the middle of the stream",
    code: "MODEL_TIMEOUT",
    what: /idleMs \(80 ms\)/,
    timeouts: { idleMs: 80 },
    only: "stream",
    answer: (_request, response) => eventStream(response, EVENTS.slice(0, 3).join("")),
  },
  {
    name: "hangs in the middle of a JSON body",
    code: "MODEL_TIMEOUT",
    what: /idleMs/,
    timeouts: { idleMs: 80 },
    only: "whole",
    answer: (_request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.write('{"choices": [');
    },
  },
  {
    name: "keeps the stream alive without end",
    code: "MODEL_TIMEOUT",
    what: /totalMs \(150 ms\)/,
    timeouts: { totalMs: 150 },
    only: "stream",
    answer: (_request, response) => {
      eventStream(response, ": keep-alive\n\n");
      const timer = setInterval(() => response.write(": keep-alive\n\n"), 10);
      response.on("close", () => clearInterval(timer));
    },
  },
  {
    name: "answers 429 with Retry-After in seconds",
    code: "MODEL_RATE_LIMITED",
    what: /HTTP 429: slow down/,
    retryable: true,
    retryAfterMs: 7000,
    answer: (_request, response) => json(response, 429, { error: { message: "slow down" } }, { "retry-after": "7" }),
  },
  {
    name: "answers 429 with Retry-After as a date",
    code: "MODEL_RATE_LIMITED",
    what: /HTTP 429/,
    retryAfterMs: 90_000,
    answer: (_request, response) =>
      json(response, 429, { detail: "busy" }, { "retry-after": "Wed, 01 Jan 2025 00:01:30 GMT" }),
  },
  {
    name: "answers 429 with retry-after-ms",
    code: "MODEL_RATE_LIMITED",
    what: /HTTP 429/,
    retryAfterMs: 250,
    answer: (_request, response) => json(response, 429, {}, { "retry-after-ms": "250", "retry-after": "1" }),
  },
  {
    name: "answers 429 because the account is empty",
    code: "MODEL_REFUSED_REQUEST",
    what: /exceeded your current quota/,
    retryable: false,
    answer: (_request, response) =>
      json(response, 429, {
        error: { message: "You exceeded your current quota", type: "insufficient_quota", code: "insufficient_quota" },
      }),
  },
  {
    name: "answers 500 with plain text",
    code: "MODEL_SERVER_ERROR",
    what: /HTTP 500: Internal Server Error/,
    retryable: true,
    answer: (_request, response) => text(response, 500, "text/plain", "Internal Server Error"),
  },
  {
    name: "answers 502 with a gateway's page",
    code: "MODEL_SERVER_ERROR",
    what: /HTTP 502: an HTML page/,
    answer: (_request, response) => text(response, 502, "text/html", "<html><h1>Bad Gateway</h1></html>"),
  },
  {
    name: "answers 503 with Retry-After and no body",
    code: "MODEL_SERVER_ERROR",
    what: /HTTP 503/,
    retryAfterMs: 2000,
    answer: (_request, response) => {
      response.writeHead(503, { "retry-after": "2" });
      response.end();
    },
  },
  {
    name: "answers 500 and hangs in the error's body",
    code: "MODEL_SERVER_ERROR",
    what: /HTTP 500/,
    timeouts: { idleMs: 80 },
    answer: (_request, response) => {
      response.writeHead(500, { "content-type": "application/json" });
      response.write('{"error": ');
    },
  },
  {
    name: "refuses the key and quotes it",
    code: "MODEL_AUTH",
    what: /HTTP 401: bad key \[redacted\]/,
    retryable: false,
    answer: (request, response) => {
      const key = String(request.headers.authorization).replace("Bearer ", "");
      json(response, 401, { error: { message: `bad key ${key}`, type: "invalid_request_error" } });
    },
  },
  {
    name: "forbids the model",
    code: "MODEL_AUTH",
    what: /HTTP 403: not yours/,
    answer: (_request, response) => json(response, 403, { error: "not yours" }),
  },
  {
    name: "does not know the model (vLLM's flat error)",
    code: "MODEL_REFUSED_REQUEST",
    what: /HTTP 404: The model `x` does not exist/,
    retryable: false,
    answer: (_request, response) =>
      json(response, 404, {
        object: "error",
        message: "The model `x` does not exist.",
        type: "NotFoundError",
        code: 404,
      }),
  },
  {
    name: "refuses a prompt that is too long",
    code: "MODEL_REFUSED_REQUEST",
    what: /HTTP 400: maximum context length is 4096 tokens/,
    answer: (_request, response) =>
      json(response, 400, { error: { message: "maximum context length is 4096 tokens" } }),
  },
  {
    name: "refuses with FastAPI's list of details, and at length",
    code: "MODEL_REFUSED_REQUEST",
    what: /HTTP 422: .*field required.*…$/,
    answer: (_request, response) =>
      json(response, 422, { detail: [{ loc: ["body"], msg: `field required ${"x".repeat(5000)}` }] }),
  },
  {
    name: "redirects",
    code: "MODEL_BAD_BODY",
    what: /redirects \(HTTP 307\) to https:\/\/elsewhere.example\/v1$/,
    retryable: false,
    answer: (_request, response) => {
      response.writeHead(307, { location: `https://elsewhere.example/v1?token=${KEY}` });
      response.end();
    },
  },
  {
    name: "answers 200 with an empty body",
    code: "MODEL_BAD_BODY",
    what: /empty body/,
    retryable: true,
    answer: (_request, response) => text(response, 200, "application/json", ""),
  },
  {
    name: "answers 204",
    code: "MODEL_BAD_BODY",
    what: /HTTP 204 with an empty body/,
    answer: (_request, response) => {
      response.writeHead(204);
      response.end();
    },
  },
  {
    name: "streams nothing at all",
    code: "MODEL_BAD_BODY",
    what: /empty body/,
    answer: (_request, response) => text(response, 200, "text/event-stream", ""),
  },
  {
    name: "answers with something that is not JSON",
    code: "MODEL_BAD_BODY",
    what: /not JSON: "It works! \[redacted\]"/,
    answer: (_request, response) => text(response, 200, "application/json", `It works! ${KEY}`),
  },
  {
    name: "answers with half a JSON value",
    code: "MODEL_BAD_BODY",
    what: /not JSON/,
    answer: (_request, response) => text(response, 200, "application/json", '{"choices": [{"mess'),
  },
  {
    name: "answers with a web page",
    code: "MODEL_BAD_BODY",
    what: /web page \(HTML\)/,
    retryable: false,
    answer: (_request, response) => text(response, 200, "text/html", "<!doctype html><title>Welcome</title>"),
  },
  {
    name: "reports an error with status 200",
    code: "MODEL_SERVER_ERROR",
    what: /reported an error: the engine died \[redacted\]/,
    answer: (_request, response) => json(response, 200, { error: { message: `the engine died ${KEY}` } }),
  },
  {
    name: "reports a rate limit with status 200",
    code: "MODEL_RATE_LIMITED",
    what: /HTTP 429: too many/,
    answer: (_request, response) => json(response, 200, { error: { message: "too many", code: 429 } }),
  },
  {
    name: "reports an error in the middle of the stream",
    code: "MODEL_SERVER_ERROR",
    what: /out of memory/,
    only: "stream",
    answer: (_request, response) => {
      eventStream(response, EVENTS.slice(0, 4).join(""));
      response.end('data: {"error": {"message": "out of memory", "type": "internal"}}\n\n');
    },
  },
  {
    name: "ends the stream before the finish reason",
    code: "MODEL_STREAM_CUT",
    what: /without a finish reason or \[DONE\]/,
    retryable: true,
    only: "stream",
    answer: (_request, response) => {
      eventStream(response, EVENTS.slice(0, 4).join(""));
      response.end();
    },
  },
  {
    name: "ends the stream in the middle of an event",
    code: "MODEL_STREAM_CUT",
    what: /without a finish reason or \[DONE\]/,
    only: "stream",
    answer: (_request, response) => {
      eventStream(response, EVENTS.join("").slice(0, 700));
      response.end();
    },
  },
  {
    name: "breaks the connection in the middle of the answer",
    code: "MODEL_STREAM_CUT",
    what: /broke in the middle/,
    retryable: true,
    answer: (_request, response) => {
      eventStream(response, EVENTS.slice(0, 4).join(""));
      response.write("", () => response.socket?.resetAndDestroy());
    },
  },
  {
    name: "sends less than it announced",
    code: "MODEL_STREAM_CUT",
    what: /broke in the middle/,
    answer: (_request, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": "5000" });
      response.write('{"choices": [', () => response.socket?.destroy());
    },
  },
  {
    name: "streams an event that is not JSON",
    code: "MODEL_BAD_BODY",
    what: /JSON/,
    only: "stream",
    answer: (_request, response) => {
      eventStream(response, `data: {"choices": ${KEY}\n\n`);
      response.end();
    },
  },
  {
    name: "streams events of the wrong shape",
    code: "MODEL_WRONG_SHAPE",
    what: /field choices/,
    retryable: false,
    only: "stream",
    answer: (_request, response) => {
      eventStream(response, 'data: {"choices": "none"}\n\n');
      response.end();
    },
  },
  {
    name: "answers with JSON of the wrong shape",
    code: "MODEL_WRONG_SHAPE",
    what: /choices/,
    only: "whole",
    answer: (_request, response) => json(response, 200, { status: "ok" }),
  },
  {
    name: "answers without a choice",
    code: "MODEL_WRONG_SHAPE",
    what: /choices/,
    only: "whole",
    answer: (_request, response) => json(response, 200, { choices: [] }),
  },
  {
    name: "sends more than any completion",
    code: "MODEL_BAD_BODY",
    what: /larger than 100000 bytes/,
    retryable: false,
    answer: (_request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(`"${"x".repeat(200_000)}"`);
    },
  },
  {
    name: "streams more than any completion",
    code: "MODEL_BAD_BODY",
    what: /larger than 100000 bytes/,
    only: "stream",
    answer: (_request, response) => {
      response.on("error", () => {});
      eventStream(response, `data: ${"x".repeat(200_000)}`);
    },
  },
  {
    name: "resets the connection before an answer",
    code: "MODEL_UNREACHABLE",
    what: /broke before an answer/,
    retryable: true,
    answer: (_request, response) => {
      response.socket?.resetAndDestroy();
    },
  },
];

for (const client of CLIENTS) {
  describe(`${client.name}: an error from the catalogue when the model server`, () => {
    for (const fault of FAULTS) {
      if (fault.only !== undefined && (fault.only === "stream") !== client.stream) continue;
      test(fault.name, async () => {
        const server = await startServer(fault.answer);
        onTestFinished(server.close);
        const error = await failure(client.make(server.url, fault.timeouts), server.url);
        expect(error.code).toBe(fault.code);
        expect(error.what).toMatch(fault.what);
        if (fault.retryable !== undefined) expect(error.retryable).toBe(fault.retryable);
        expect(error.retryAfterMs).toBe(fault.retryAfterMs);
        expect(server.seen.length).toBeLessThanOrEqual(1); // never asked again by itself
      });
    }

    test("is not there", async () => {
      const server = await startServer(() => {});
      await server.close();
      const error = await failure(client.make(server.url), server.url);
      expect(error).toMatchObject({ code: "MODEL_UNREACHABLE", retryable: true });
      expect(error.what).toMatch(/nothing listens there \(ECONNREFUSED\)/);
    });

    test("does not speak HTTP", async () => {
      const url = await listen((socket) => socket.once("data", () => socket.write("SSH-2.0-OpenSSH_9.9\r\n")));
      expect(await failure(client.make(url), url)).toMatchObject({ code: "MODEL_BAD_BODY" });
    });

    test("accepts the connection but never finishes the TLS handshake", async () => {
      const url = (await listen(() => {})).replace("http:", "https:");
      const error = await failure(client.make(url, { connectMs: 80 }), url);
      expect(error.code).toBe("MODEL_TIMEOUT");
      expect(error.what).toMatch(/UND_ERR_CONNECT_TIMEOUT/);
    });
  });
}

test.each([
  ["ENOTFOUND", /host name is not known/],
  ["EAI_AGAIN", /host name is not known/],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", /TLS certificate/],
  ["EHOSTUNREACH", /broke before an answer \(EHOSTUNREACH\)/],
])("a connection that fails with %s is an unreachable server", (code, what) => {
  const cause = Object.assign(new Error(`connect ${code} ${KEY}`), { code });
  const place = { where: "http://model.example/v1", secrets: [apiKey] };
  const error = networkError(new TypeError("fetch failed", { cause }), false, place);
  expect(error.code).toBe("MODEL_UNREACHABLE");
  expect(error.what).toMatch(what);
  expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(KEY);
});

test("a streaming client takes a whole JSON answer where the server ignores `stream`", async () => {
  const server = await startServer((_request, response) =>
    json(response, 200, { choices: [{ message: { content: "whole" }, finish_reason: "stop" }] }),
  );
  onTestFinished(server.close);
  const model = openAICompatible({ baseUrl: server.url, model: MODEL });
  expect(await model.complete(SCENARIOS.text.request)).toEqual({
    content: "whole",
    toolCalls: [],
    finishReason: "stop",
    model: MODEL,
  });
});

test("a complete stream whose connection stays open gives its answer", async () => {
  const server = await startServer((_request, response) => eventStream(response, EVENTS.join("")));
  onTestFinished(server.close);
  const model = openAICompatible({ baseUrl: server.url, model: MODEL });
  expect(await model.complete(SCENARIOS.text.request)).toEqual(SCENARIOS.text.response);
});

test("an error in the listener is not blamed on the server", async () => {
  const server = await startServer((_request, response) => {
    eventStream(response, EVENTS.join(""));
    response.end();
  });
  onTestFinished(server.close);
  const model = openAICompatible({ baseUrl: server.url, model: MODEL });
  const onDelta = () => {
    throw new TypeError("listener broke");
  };
  await expect(model.complete(SCENARIOS.text.request, { onDelta })).rejects.toMatchObject({ code: "INTERNAL" });
});

/** A bare TCP server on loopback, as an http URL. */
async function listen(onSocket: (socket: Socket) => void): Promise<string> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    onSocket(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  );
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
