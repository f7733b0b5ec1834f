// Sends what AFlow sends, in words of its own: one user message and no system prompt, temperature and top_p, no stream;
// many problems at once; the same prompt several times over (self-consistency); an ensemble that quotes the answers by
// letter; an operator that is asked again with the same words where its answer has the wrong form; at the end an
// optimizer's prompt with a sample of the runs. Arguments: problems as JSON, a folder of role prompts, "shuffle" to show
// the ensemble its solutions in random order.
import { readFileSync } from "node:fs";

const [, , problemsJson, prompts, order = "in-order"] = process.argv;
const instruction = (role) => readFileSync(`${prompts}/${role}.md`, "utf8").trim();

async function ask(prompt, temperature = 0) {
  const response = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${process.env.OPENAI_API_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ messages: [{ role: "user", content: prompt }], model: "simulator", temperature, top_p: 1 }),
  });
  const body = await response.json();
  if (!response.ok) throw new Error(body.error.message);
  return body.choices[0].message.content;
}

/** In AFlow a whole operator is tried three times; the request is the same each time, and so is its retry header: none. */
async function custom(role, said) {
  for (let attempt = 0; attempt < 3; attempt++) {
    const answer = (await ask(`${instruction(role)}\n\n${said.join("\n\n")}`)).trim();
    if (answer !== "") return answer;
  }
  throw new Error("no answer of that form");
}

async function ensemble(solutions) {
  const shown = order === "shuffle" ? shuffled(solutions) : solutions;
  const listed = shown.map((solution, index) => `${String.fromCharCode(65 + index)}: \n${solution}\n\n\n`).join("");
  const answer = await ask(
    `Several solutions were given:\n${listed}\nName the most consistent.\n<thought>why</thought>\n<solution_letter>the letter</solution_letter>`,
  );
  const letter = /<solution_letter>\s*([A-Z])/u.exec(answer)?.[1] ?? "A";
  return shown[letter.charCodeAt(0) - 65];
}

function shuffled(list) {
  const left = [...list];
  return list.map(() => left.splice(Math.floor(Math.random() * left.length), 1)[0]);
}

async function workflow(text) {
  const said = [`Problem: ${text}\n\nSolve it one calculation at a time.`];
  for (let calculation = 0; calculation < 16; calculation++) {
    said.push(await custom("planner", said));
    said.push(await custom("solver", said));
    if (said.at(-2).endsWith("(last)")) break;
  }
  const votes = [];
  for (let vote = 0; vote < 3; vote++) votes.push(await custom("verifier", said));
  return ensemble(votes);
}

const answers = await Promise.all(JSON.parse(problemsJson).map(workflow));
console.log(
  JSON.stringify({ answer: answers.map((answer) => /-?[\d.]*\d(?=\D*$)/u.exec(answer)?.[0] ?? "").join(" ") }),
);
