/** A chat server in a process of its own that answers every request alike after a delay: `eval-throughput.ts` starts it. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const delay = Number(process.argv[2]);
const answer = JSON.stringify({
  model: "m",
  choices: [{ message: { role: "assistant", content: '{"agent": "WebSurfer", "step": 1}' }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1000, completion_tokens: 20 },
});
const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(answer) };

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  request.resume();
  request.once("end", () =>
    setTimeout(() => {
      response.writeHead(200, headers);
      response.end(answer);
    }, delay),
  );
});
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.on("message", () => process.send?.(process.cpuUsage()));
process.on("disconnect", () => process.exit(0));
