// AI SDK: the planner is an agent with a tool that puts the solver to work (streamed); a verifier and an auditor check
// the result at the same time, as structured output.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, Output, stepCountIs, streamText, ToolLoopAgent, tool } from "ai";
import { z } from "zod";
import { answer, apiKey, baseUrl, instructions, model, problem } from "./rootstep_program.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;

const modelOf = (agent) =>
  createOpenAICompatible({
    name: "rootstep",
    baseURL: baseUrl(agent),
    apiKey: apiKey(),
    includeUsage: true,
    supportsStructuredOutputs: true,
  })(model());

const work = [];

const solve = tool({
  description: "Has the solver carry out a calculation. Gives back the line with its result.",
  inputSchema: z.object({ plan: z.string().describe("Plan N: A op B, with (last) after the last one") }),
  async execute({ plan }) {
    work.push(plan);
    const { textStream } = streamText({
      model: modelOf("solver"),
      system: instructions("solver"),
      prompt: `${problem()}\n\nThe team so far:\n${work.join("\n")}`,
    });
    let line = "";
    for await (const text of textStream) line += text;
    work.push(line.trim());
    return line.trim();
  },
});

const planner = new ToolLoopAgent({
  model: modelOf("planner"),
  instructions: `${instructions("planner")}\n\nDo not write your line as text: call the tool solve with it, once for each calculation. When the calculation marked (last) is carried out, say that the work is done.`,
  tools: { solve },
  stopWhen: stepCountIs(20),
});

const check = async (agent, manner) => {
  const { output } = await generateText({
    model: modelOf(agent),
    system: `${instructions("verifier")}\n\n${manner} Give your line as JSON: {"statement": "…"}.`,
    prompt: `${problem()}\n\nThe team so far:\n${work.join("\n")}`,
    output: Output.object({ schema: z.object({ statement: z.string() }) }),
  });
  return output.statement;
};

await planner.generate({ prompt: problem() });
const [verified, audited] = await Promise.all([
  check("verifier", "Trust the solver's results."),
  check("auditor", "Look at each result again."),
]);
// Where the two disagree, the working itself decides.
answer(verified === audited ? verified : work.at(-1));
