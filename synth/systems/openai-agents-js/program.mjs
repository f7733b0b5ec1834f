// OpenAI Agents SDK: planner, solver and verifier hand the conversation to each other, over the streamed Responses API.
import { Agent, handoff, OpenAIProvider, run } from "@openai/agents";
import { promptWithHandoffInstructions } from "@openai/agents-core/extensions";
import { answer, apiKey, baseUrl, instructions, model, problem } from "./rootstep_program.mjs";

const PASS_ON = {
  planner: "After your line, hand over to the solver.",
  solver: "After your line, hand over to the planner; if the calculation was marked (last), to the verifier.",
  verifier: "You are handed the work when it is done: state the final answer, and hand over to nobody.",
};

const agent = async (name, handoffDescription) =>
  new Agent({
    name,
    handoffDescription,
    instructions: promptWithHandoffInstructions(`${instructions(name)}\n\n${PASS_ON[name]}`),
    // A provider of its own for each agent: its base URL is its lane.
    model: await new OpenAIProvider({ baseURL: baseUrl(name), apiKey: apiKey(), useResponses: true }).getModel(model()),
  });

const planner = await agent("planner", "Names the next calculation.");
const solver = await agent("solver", "Carries out the planner's latest calculation.");
const verifier = await agent("verifier", "States the final answer once the last calculation is carried out.");
planner.handoffs = [handoff(solver)];
solver.handoffs = [handoff(planner), handoff(verifier)];

const result = await run(planner, problem(), { stream: true, maxTurns: 64 });
await result.completed;
answer(result.finalOutput);
