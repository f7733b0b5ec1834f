import { createServer } from "node:net";
import { Agent } from "undici";
import { expect, onTestFinished, test } from "vitest";
import { startExchange } from "../../src/models/http-exchange.ts";
import { startServer } from "./loopback.ts";

const post = { method: "POST", headers: {}, body: "{}" };

test("a body larger than what may wait comes whole to a reader that begins late", async () => {
  const body = Buffer.alloc(5_000_000, "0123456789abcdef");
  const server = await startServer((_, response) => void response.end(body));
  onTestFinished(server.close);
  const dispatcher = new Agent();
  onTestFinished(() => dispatcher.destroy());
  const exchange = startExchange(dispatcher, new URL(server.url), post);
  expect((await exchange.head).status).toBe(200);
  for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate);
  expect(exchange.over).toBe(false); // the rest waits in the connection
  const pieces: Uint8Array[] = [];
  for (let piece = await exchange.next(); piece !== undefined; piece = await exchange.next()) pieces.push(piece);
  expect(Buffer.concat(pieces).equals(body)).toBe(true);
  expect(await exchange.next()).toBeUndefined();
});

test("what came before the connection broke can still be read, then the break is told", async () => {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf", () => socket.destroy());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("no port");
  const dispatcher = new Agent();
  onTestFinished(() => dispatcher.destroy());
  const exchange = startExchange(dispatcher, new URL(`http://127.0.0.1:${address.port}`), post);
  await exchange.head;
  expect(Buffer.from((await exchange.next()) ?? []).toString()).toBe("half");
  await expect(exchange.next()).rejects.toThrow();
  expect(exchange.over).toBe(true);
});

test("a request given up while its connection is still being made ends at once, with the reason given", async () => {
  const server = await startServer((_, response) => void response.end("late"));
  onTestFinished(server.close);
  let connect = (): void => {};
  const dispatcher = new Agent({
    connect: (_options, callback) => {
      connect = () => callback(new Error("never"), null);
    },
  });
  const exchange = startExchange(dispatcher, new URL(server.url), post);
  const reason = new Error("enough");
  exchange.abort(reason);
  await expect(exchange.head).rejects.toBe(reason);
  connect();
  await dispatcher.destroy();
  expect(server.seen).toEqual([]);
});
