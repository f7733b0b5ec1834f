/**
 * Stands between rootstep and real model servers and keeps what they answer, for a test that repeats the run without them:
 * `npx tsx scripts/real-llm/keep-answers.ts ANSWERS.jsonl PORT MODEL=URL…`. What the file holds is not asked again.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { keptAnswerSchema, startAnswerServer } from "../../tests/e2e/answer-server.ts";

const [file, port, ...servers] = process.argv.slice(2);
if (file === undefined || port === undefined || servers.length === 0) {
  console.error("usage: keep-answers.ts ANSWERS.jsonl PORT MODEL=URL…");
  process.exit(2);
}
const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
const kept = lines.filter((line) => line !== "").map((line) => keptAnswerSchema.parse(JSON.parse(line)));
const upstreams = Object.fromEntries(
  servers.map((server) => [server.slice(0, server.indexOf("=")), server.slice(server.indexOf("=") + 1)]),
);
const { url } = await startAnswerServer({
  answers: new Map(kept.map((answer) => [answer.key, answer])),
  port: Number(port),
  upstreams,
  onNew: (answer) => appendFileSync(file, `${JSON.stringify(answer)}\n`),
});
console.log(`${kept.length} answers kept; listening on ${url}`);
