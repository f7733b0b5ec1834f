import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { openAICompatible } from "../../src/models/openai-compatible.ts";

it("asks for nothing packed, and says so when a server packs all the same", async () => {
  let asked: string | string[] | undefined;
  const server = createServer((request, response) => {
    asked = request.headers["accept-encoding"];
    response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
    response.end(gzipSync('{"choices":[{"message":{"content":"x"}}]}'));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  try {
    const model = openAICompatible({ baseUrl, model: "m", stream: false });
    await expect(model.complete({ messages: [{ role: "user", content: "hi" }] })).rejects.toMatchObject({
      code: "MODEL_BAD_BODY",
      what: expect.stringContaining("gzip"),
      where: expect.stringContaining(baseUrl),
    });
    expect(asked).toBe("identity");
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
