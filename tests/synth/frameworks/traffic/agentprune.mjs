// Sends what AgentPrune's GSM8K experiment sends, in words of its own: a batch of questions at once, each through the same
// four agents in turn and a decision; agents named by four random characters that every later prompt quotes; two layers of
// retries. Arguments: the questions as JSON, then the number of rounds.
import { randomBytes } from "node:crypto";

const [, , questionsJson, rounds = "1"] = process.argv;
const questions = JSON.parse(questionsJson);

const ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const newId = () => [...randomBytes(4)].map((byte) => ALPHABET[byte % ALPHABET.length]).join("");

// One graph is copied for every question of the batch: the ids are the same in all of them.
const agents = [
  ["Math Solver", "You are a math expert."],
  ["Mathematical Analyst", "You are a mathematical analyst."],
  ["Programming Expert", "You are a programming expert."],
  ["Inspector", "You are an Inspector."],
].map(([role, system]) => ({ role, system: `${system} End with: The answer is N`, id: newId() }));

/** The client library's own attempts, counted in the header; around them the program's, which start counting anew. */
async function ask(system, user) {
  const body = JSON.stringify({
    messages: [
      { role: "system", content: system },
      { role: "user", content: user },
    ],
    model: "simulator",
  });
  for (let outer = 0; outer < 3; outer++) {
    for (let inner = 0; inner < 3; inner++) {
      const response = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${process.env.OPENAI_API_KEY}`,
          "content-type": "application/json",
          "x-stainless-retry-count": String(inner),
        },
        body,
      });
      if (response.ok) return (await response.json()).choices[0].message.content;
      await response.text();
      if (response.status < 429) throw new Error(`HTTP ${response.status}`);
    }
  }
  throw new Error("no answer");
}

const predicted = (text) =>
  /[Tt]he answer is (-?[\d.]+\d|\d)/u.exec(text)?.[1] ?? /-?\d+(?!.*\d)/su.exec(text)?.[0] ?? "";

function userPrompt({ role }, question, before, lastRound) {
  const asked = `Q: 1 + 1?\nA: The answer is 2\n\nQ:${question}`;
  const others = [...before, ...lastRound];
  if (role === "Math Solver") {
    return `${asked}(Hint: The answer is near to${others.map(({ text }) => ` ${predicted(text)}`).join("")}).`;
  }
  const quoted = (list, verb) =>
    list
      .map(
        ({ agent, text }) => `Agent ${agent.id} as a ${agent.role} his answer to this question ${verb}:\n\n${text}\n\n`,
      )
      .join("");
  return (
    asked +
    (before.length > 0
      ? `At the same time, there are the following responses to the same question for your reference:\n\n${quoted(before, "is")} \n\n`
      : "") +
    (lastRound.length > 0
      ? `In the last round of dialogue, there were the following responses to the same question for your reference: \n\n${quoted(lastRound, "was")}`
      : "")
  );
}

async function graph(question) {
  let said = [];
  for (let round = 0; round < Number(rounds); round++) {
    const lastRound = said;
    said = [];
    for (const agent of agents) {
      let text = await ask(agent.system, userPrompt(agent, question, said, lastRound));
      // The programming expert's code is run; what it assigns to `answer` is added to its answer.
      if (agent.role === "Programming Expert") text += `\nthe answer is ${/answer = (\S+)/u.exec(text)?.[1] ?? "None"}`;
      said.push({ agent, text });
    }
  }
  const all = said.map(({ agent, text }) => `${agent.id}: ${text}\n\n`).join("");
  return ask(
    "You are the top decision-maker.\n Give reasons.",
    `Q:1 + 1?\n\nA:The answer is 2\n The task is:\n\n ${question}.\n At the same time, the output of other agents is as follows:\n\n${all}`,
  );
}

const decisions = await Promise.all(questions.map(graph));
console.log(JSON.stringify({ answer: decisions.map(predicted).join(" ") }));
