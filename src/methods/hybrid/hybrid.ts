import { z } from "zod";
import { normalizeAgent, sameAgent } from "../../trajectory/agent-name.ts";
import { type Attribution, defineMethod, NO_CALLS } from "../method.ts";
import { explained } from "../shared/answer-text.ts";
import { type Dialogue, openDialogue } from "../shared/dialogue.ts";
import { expectedCalls, firstYes, prefixCharacters } from "../shared/first-yes.ts";
import { logPrompt, promptCharacters } from "../shared/log-prompt.ts";
import { NO_STEPS } from "../shared/no-steps.ts";
import { parseAgent } from "../shared/parse-answer.ts";
import { firstSettings, logBudgetOption, structuredOption } from "../shared/prompt-options.ts";
import { type PromptTemplate, promptTemplate } from "../shared/prompt-template.ts";
import { samplingOptions } from "../shared/sampling-options.ts";
import { agentsOf, type MethodView } from "../view.ts";

const ID = "hybrid";
const agentTemplate = (): PromptTemplate => promptTemplate(ID, "pick-agent.md");
const stepTemplate = (): PromptTemplate => promptTemplate(ID, "find-step.md");

const optionsSchema = z.strictObject({
  ...samplingOptions,
  logBudget: logBudgetOption,
  structured: structuredOption.default("never"),
});

const AGENT_SCHEMA = {
  name: "agent",
  schema: {
    type: "object",
    properties: { reason: { type: "string" }, agent: { type: "string" } },
    required: ["reason", "agent"],
    additionalProperties: false,
  },
} as const;

/**
 * The whole log names the agent, then only that agent's steps are asked about, each with the log up to it, until the first
 * yes (Zhang et al. 2025, "hybrid"). Without any yes the agent stands and the step stays open.
 */
export const hybrid = defineMethod({
  id: ID,
  title: "Hybrid: the whole log names the agent, then its steps one by one",
  needs: { model: true },
  optionsSchema,
  plan: (view, options) => {
    if (view.steps.length === 0) return NO_CALLS;
    const settings = firstSettings(options);
    const turns = [...turnsByAgent(view).values()];
    const most = Math.max(...turns.map((steps) => steps.length));
    const mean = view.steps.length / turns.length;
    const expected = expectedCalls(Math.round(mean));
    const whole = prefixCharacters(stepTemplate(), view, view.steps, settings) / view.steps.length;
    return {
      calls: { low: 1, expected: 1 + expected, high: 1 + most },
      promptCharacters: Math.round(promptCharacters(logPrompt(agentTemplate(), view, settings)) + expected * whole),
      completionTokensLimit: (1 + most) * options.maxTokens,
    };
  },
  attribute: async (view, options, context) => {
    const dialogue = openDialogue(ID, options, context);
    if (view.steps.length === 0) return NO_STEPS;
    return { ...(await answer(view, dialogue)), ...dialogue.totals() };
  },
});

async function answer(
  view: MethodView,
  dialogue: Dialogue,
): Promise<Pick<Attribution, "agent" | "step" | "parsePath" | "parseFailure" | "noStepNamed">> {
  const response = await dialogue.ask({
    name: "agent",
    prompt: (settings) => logPrompt(agentTemplate(), view, settings),
    schema: AGENT_SCHEMA,
  });
  const picked = explained(parseAgent(response.content, agentsOf(view)), response.finishReason);
  const { agent, parsePath, parseFailure, reason } = picked;
  if (agent === null) return { agent, step: null, parsePath, parseFailure: parseFailure ?? "no agent was named" };
  if (reason !== undefined) dialogue.note({ text: `${agent}: ${reason}` });
  const steps = view.steps.filter((step) => sameAgent(step.agent, agent));
  if (steps.length === 0) return { agent, step: null, parsePath, parseFailure: "the named agent is none of the run's" };
  const found = await firstYes(dialogue, stepTemplate(), view, steps);
  if (found.step === null) return { agent, parsePath, ...found };
  return { agent, step: found.step.index, parsePath: found.parsePath };
}

function turnsByAgent(view: MethodView): Map<string, number[]> {
  const turns = new Map<string, number[]>();
  for (const { agent, index } of view.steps) {
    const key = normalizeAgent(agent);
    turns.set(key, [...(turns.get(key) ?? []), index]);
  }
  return turns;
}
