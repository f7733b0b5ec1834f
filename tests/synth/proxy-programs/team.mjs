// The planner–solver–verifier team as a program of its own: fetch, one URL lane per agent, every second answer streamed.
import { readFileSync, writeFileSync } from "node:fs";

const [, , taskFile, promptFolder, ...flags] = process.argv;
const problem = readFileSync(taskFile, "utf8");
const base = process.env.OPENAI_BASE_URL;
const headers = { "content-type": "application/json", authorization: `Bearer ${process.env.OPENAI_API_KEY}` };
const log = [];

async function turn(agent, demand) {
  const system = readFileSync(`${promptFolder}/${agent}.md`, "utf8").trim();
  const user = `Problem: ${problem}\n\nLog:\n${log.join("\n")}\n\nTurn: ${agent}. ${demand}`;
  const stream = log.length % 2 === 1;
  const response = await fetch(base.replace("/v1", `/a/${agent}/v1/chat/completions`), {
    method: "POST",
    headers,
    body: JSON.stringify({
      model: "any",
      stream,
      messages: [
        { role: "system", content: system },
        { role: "user", content: user },
      ],
    }),
  });
  if (!response.ok) {
    console.error(await response.text());
    process.exit(3);
  }
  const text = await response.text();
  const line = stream
    ? [...text.matchAll(/^data: (\{.*)$/gmu)]
        .map(([, data]) => JSON.parse(data).choices[0]?.delta?.content ?? "")
        .join("")
    : JSON.parse(text).choices[0].message.content;
  log.push(`${log.length} ${agent}: ${line.trim().replace(/\s*\n\s*/gu, " ")}`);
  return line;
}

for (let calculation = 1; calculation <= 30; calculation++) {
  const plan = await turn("planner", "Name the next calculation.");
  await turn("solver", "Carry out the latest plan.");
  if (/\(last\)\.?\s*$/u.test(plan)) break;
  if (calculation % 2 === 0) await turn("verifier", "State the current value.");
}
const verdict = await turn("verifier", "State the final answer.");
const answer = verdict.match(/-?\d[\d,]*(?:\.\d+)?/gu)?.at(-1) ?? "none";
if (flags.includes("--answer-file")) writeFileSync(process.env.ROOTSTEP_ANSWER, JSON.stringify({ answer }));
else console.log(JSON.stringify({ answer }));
