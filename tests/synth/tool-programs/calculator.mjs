// An MCP server over stdio of the official library. Each start leaves a line in the file named first, so that a test sees
// whether it ran; `ask` asks its client's model (sampling), `die` ends the process.
import { appendFileSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

appendFileSync(process.argv[2], "started\n");
const server = new McpServer({ name: "calculator", version: "1.0.0" });
let count = 0;
const text = (value) => ({ content: [{ type: "text", text: String(value) }] });
server.registerTool(
  "add",
  { inputSchema: { a: z.number(), b: z.number() } },
  async ({ a, b }, { _meta, sendNotification }) => {
    const progressToken = _meta?.progressToken;
    if (progressToken !== undefined) {
      await sendNotification({ method: "notifications/progress", params: { progressToken, progress: 1, total: 2 } });
    }
    return text(a + b);
  },
);
server.registerTool("count", {}, () => text(++count));
server.registerTool("fail", {}, () => {
  throw new Error("the calculator is broken");
});
server.registerTool("ask", {}, async () => {
  const messages = [{ role: "user", content: { type: "text", text: "what now?" } }];
  const answer = await server.server.createMessage({ messages, maxTokens: 10 });
  return text(`the model said ${answer.content.text}`);
});
server.registerTool("die", {}, () => process.exit(3));
await server.connect(new StdioServerTransport());
