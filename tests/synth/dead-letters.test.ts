import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { readRunStatus } from "../../synth/ledger/read.ts";
import { chatBodySchema, chatCompletion, chatRequestOf } from "../../synth/simulator/chat-wire.ts";
import { knowledgeOf } from "../../synth/simulator/knowledge.ts";
import { simulatedModel, simulatorConfigSchema } from "../../synth/simulator/simulator.ts";
import { chain } from "../../synth/tasks/chain.ts";
import { describeWithRedis, startRedis } from "../redis-server.ts";
import { cleanUp, freshRun, runIn, startWorker } from "./worker-setting.ts";

let server: Server | undefined;
afterEach(async () => {
  await cleanUp();
  server?.close();
  server?.closeAllConnections();
});

type Fault = (response: ServerResponse) => void;

const FAULTS: readonly (readonly [string, Fault])[] = [
  ["MODEL_SERVER_ERROR", (response) => void response.writeHead(503).end('{"error":{"message":"overloaded"}}')],
  ["MODEL_RATE_LIMITED", (response) => void response.writeHead(429, { "retry-after": "0" }).end("{}")],
  ["MODEL_REFUSED_REQUEST", (response) => void response.writeHead(400).end('{"error":{"message":"context too long"}}')],
  ["MODEL_TIMEOUT", () => {}], // never answers
  ["MODEL_BAD_BODY", (response) => void response.writeHead(200).end("<html>nonsense</html>")],
  [
    "MODEL_STREAM_CUT",
    (response) => {
      response.writeHead(200).write('{"id"');
      setTimeout(() => response.destroy(), 5);
    },
  ],
];

/** The simulator behind HTTP, with a fault of its own for each of the first tasks. */
async function faultyServer() {
  const tasks = await chain.load({ seed: 1, limit: 12 });
  const config = simulatorConfigSchema.parse({ provider: "simulator", regime: "systematic", hardRate: 0 });
  const model = simulatedModel({ config, solve: knowledgeOf(tasks) });
  server = createServer((request, response) => {
    let text = "";
    request.on("data", (part: Buffer) => {
      text += part;
    });
    request.on("end", () => {
      const fault = FAULTS.find((_, index) => text.includes(JSON.stringify(tasks[index]?.text).slice(1, -1)))?.[1];
      if (fault !== undefined) return fault(response);
      const asked = chatRequestOf(chatBodySchema.parse(JSON.parse(text)));
      response.setHeader("content-type", "application/json");
      model.complete(asked).then((answer) => response.end(JSON.stringify(chatCompletion("id", 0, answer))));
    });
  });
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const settings = {
    tasks: { set: "chain", limit: 12 },
    model: {
      provider: "openai-compatible",
      baseUrl: `http://127.0.0.1:${port}/v1`,
      model: "simulated",
      stream: false,
      retries: { attempts: 2, baseMs: 1 },
      timeouts: { firstByteMs: 2000 },
    },
    inject: { operator: "none" },
    concurrency: 12,
  };
  return { settings, tasks };
}

/** Of each unit that died, why. */
const reasons = (path: string): Record<string, string> =>
  Object.fromEntries(readRunStatus(path).dead.map(({ key, code }) => [key, code]));

async function expectDeadLetters(redis?: string): Promise<void> {
  const { settings, tasks } = await faultyServer();
  const out = freshRun();
  const report = await runIn(out, { settings, ...(redis === undefined ? {} : { redis }) });
  expect(report.runs).toBe(6);
  expect(report.dead).toEqual({ record: 6 });
  expect(reasons(out)).toEqual(Object.fromEntries(FAULTS.map(([code], index) => [tasks[index]?.id, code])));
  const attempts = Object.fromEntries(readRunStatus(out).dead.map((dead) => [dead.code, dead.attempts]));
  expect(attempts).toMatchObject({ MODEL_SERVER_ERROR: 3, MODEL_TIMEOUT: 3, MODEL_REFUSED_REQUEST: 1 });
}

it("a model server that fails for some units leaves them as dead letters with reasons, after the retries; the others are done", async () => {
  await expectDeadLetters();
});

describeWithRedis("the same on workers", () => {
  it("leaves the same dead letters", async () => {
    const redis = await startRedis();
    try {
      startWorker(redis.url, { slots: 12 });
      await expectDeadLetters(redis.url);
    } finally {
      await cleanUp();
      await redis.stop();
    }
  });
});
