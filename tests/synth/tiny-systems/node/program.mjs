import { answer, apiKey, baseUrl, instructions, model, problem } from "./rootstep_program.mjs";

const response = await fetch(`${baseUrl("solver")}/chat/completions`, {
  method: "POST",
  headers: { authorization: `Bearer ${apiKey()}` },
  body: JSON.stringify({
    model: model(),
    messages: [
      { role: "system", content: instructions("planner") },
      { role: "user", content: problem() },
    ],
  }),
});
answer((await response.json()).choices[0].message.content);
