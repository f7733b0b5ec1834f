// An agent with an MCP server over stdio: asks its model, calls a tool, asks its model with the result.
// agent.mjs SERVER-COMMAND…; TOOLS in the environment: a JSON list of [tool, arguments].
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { CreateMessageRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const chat = async (content) => {
  const response = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${process.env.OPENAI_API_KEY}` },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content }] }),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.message);
  return answer.choices[0].message.content;
};

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "agent", version: "1.0.0" }, { capabilities: { sampling: {} } });
client.setRequestHandler(CreateMessageRequestSchema, async ({ params }) => ({
  model: "m",
  role: "assistant",
  content: { type: "text", text: await chat(`sampling: ${params.messages[0].content.text}`) },
}));
// Only PATH and HOME reach the server, as with any client of the library.
await client.connect(new StdioClientTransport({ command, args, stderr: "inherit" }));
const said = [];
try {
  for (const [name, input] of JSON.parse(process.env.TOOLS)) {
    const wish = await chat(`before ${name}`);
    const progress = [];
    const result = await client.callTool({ name, arguments: { ...input } }, undefined, {
      onprogress: (at) => progress.push(at.progress),
    });
    said.push([wish, result.content[0].text, result.isError === true, ...progress]);
  }
  said.push(await chat(`after ${JSON.stringify(said)}`));
} catch (error) {
  said.push(`error: ${error.message}`);
}
await client.close();
console.log(JSON.stringify({ answer: said }));
