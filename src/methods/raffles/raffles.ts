import { z } from "zod";
import { type Attribution, defineMethod, NO_CALLS } from "../method.ts";
import { answerSchema } from "../shared/answer-schema.ts";
import { explained } from "../shared/answer-text.ts";
import { type Dialogue, openDialogue } from "../shared/dialogue.ts";
import { type LogPrompt, logPrompt, type PromptSettings, promptCharacters } from "../shared/log-prompt.ts";
import { NO_STEPS } from "../shared/no-steps.ts";
import { parseConfidence } from "../shared/parse-confidence.ts";
import { firstSettings, logBudgetOption, structuredOption } from "../shared/prompt-options.ts";
import { promptTemplate } from "../shared/prompt-template.ts";
import { samplingOptions } from "../shared/sampling-options.ts";
import type { MethodView } from "../view.ts";
import { type Candidate, POINT_TITLES, POINTS, type Point, readProposal, ruleCheck } from "./candidate.ts";
import { type Critique, critiqueText, memoryText, type Round } from "./memory.ts";

const ID = "raffles";

const optionsSchema = z.strictObject({
  ...samplingOptions,
  logBudget: logBudgetOption,
  structured: structuredOption.default("auto"),
  rounds: z.number().int().min(1).max(10).default(2).describe("most rounds of judge and examiners (K)"),
  threshold: z
    .number()
    .min(0)
    .max(1)
    .default(0.85)
    .describe("a proposal whose mean confidence reaches this ends the inquiry"),
});

const CRITIQUE_SCHEMA = {
  name: "critique",
  schema: {
    type: "object",
    properties: { reason: { type: "string" }, confidence: { type: "integer" } },
    required: ["reason", "confidence"],
    additionalProperties: false,
  },
} as const;

/** A round asks the judge and one examiner per point. */
const CALLS_PER_ROUND = 1 + POINTS.length;

function judgePrompt(view: MethodView, rounds: readonly Round[], settings: PromptSettings): LogPrompt {
  return logPrompt(promptTemplate(ID, "judge.md"), view, settings, { memory: memoryText(rounds) });
}

function examinerPrompt(view: MethodView, point: Point, candidate: Candidate, settings: PromptSettings): LogPrompt {
  return logPrompt(promptTemplate(ID, `examine-${point}.md`), view, settings, {
    agent: candidate.agent,
    step: String(candidate.step),
    reason: candidate.reasons[point] ?? "(none given)",
  });
}

/**
 * A judge proposes, examiners and a rule check score the proposal on one point each, and the judge goes on with all earlier
 * proposals and remarks before it (Zhu et al. 2025, RAFFLES). It ends when a proposal reaches the threshold or after K
 * rounds; the best-scored proposal is the answer, of equal ones the latest.
 */
export const raffles = defineMethod({
  id: ID,
  title: "RAFFLES: a judge proposes, examiners score, memory goes on to the next round",
  needs: { model: true },
  optionsSchema,
  plan: (view, options) => {
    if (view.steps.length === 0) return NO_CALLS;
    const settings = firstSettings(options);
    const candidate: Candidate = { agent: "", step: 0, reasons: {}, parsePath: "none" };
    const round =
      promptCharacters(judgePrompt(view, [], settings)) +
      POINTS.reduce((sum, point) => sum + promptCharacters(examinerPrompt(view, point, candidate, settings)), 0);
    const high = options.rounds * CALLS_PER_ROUND;
    // Half of the rounds after the first are needed; the fewest calls are those of rounds without a proposal to examine.
    const expected = Math.round(CALLS_PER_ROUND * (1 + (options.rounds - 1) / 2));
    return {
      calls: { low: Math.min(CALLS_PER_ROUND, options.rounds), expected, high },
      promptCharacters: Math.round((round * expected) / CALLS_PER_ROUND),
      completionTokensLimit: high * options.maxTokens,
    };
  },
  attribute: async (view, options, context) => {
    const dialogue = openDialogue(ID, options, context);
    if (view.steps.length === 0) return NO_STEPS;
    const rounds: Round[] = [];
    for (let number = 1; number <= options.rounds; number++) {
      const round = await playRound(view, rounds, number, dialogue);
      rounds.push(round);
      if (round.candidate !== undefined && round.score >= options.threshold) break;
    }
    return { ...verdict(rounds), ...dialogue.totals() };
  },
});

async function playRound(
  view: MethodView,
  earlier: readonly Round[],
  number: number,
  dialogue: Dialogue,
): Promise<Round> {
  const response = await dialogue.ask({
    name: `judge, round ${number}`,
    prompt: (settings) => judgePrompt(view, earlier, settings),
    schema: answerSchema("proposal", POINTS),
  });
  const proposal = readProposal(response, view);
  if (proposal.candidate === undefined) {
    dialogue.note({ text: `round ${number}: no proposal could be read: ${proposal.parseFailure}` });
    return proposal;
  }
  const { candidate } = proposal;
  const { holds, acting, text: rule } = ruleCheck(candidate, view);
  const remark = (text: string): void =>
    dialogue.note({ text: `round ${number}: ${text}`, ...(acting !== undefined && { step: candidate.step }) });
  remark(`proposed step ${candidate.step}, ${candidate.agent}`);
  remark(rule);
  if (acting === undefined) return { candidate, rule, score: 0 };

  const ask = (point: Point): Promise<Critique> => examine(view, point, candidate, number, dialogue);
  // One after the other: a smaller budget that the first finds serves the others.
  const critiques = { error: await ask("error"), first: await ask("first"), effect: await ask("effect") };
  for (const point of POINTS) remark(`${POINT_TITLES[point]}: ${critiqueText(critiques[point])}`);
  // An unreadable confidence supports nothing.
  const support = POINTS.reduce((sum, point) => sum + (critiques[point].confidence ?? 0), holds ? 1 : 0);
  return { candidate, rule, critiques, score: support / (1 + POINTS.length) };
}

async function examine(
  view: MethodView,
  point: Point,
  candidate: Candidate,
  number: number,
  dialogue: Dialogue,
): Promise<Critique> {
  const response = await dialogue.ask({
    name: `examiner of "${point}", round ${number}`,
    prompt: (settings) => examinerPrompt(view, point, candidate, settings),
    schema: CRITIQUE_SCHEMA,
  });
  const parsed = explained(parseConfidence(response.content), response.finishReason);
  const { confidence, reason, parseFailure } = parsed;
  if (confidence === null) return { confidence, text: reason ?? `Unreadable: ${parseFailure ?? "no answer"}.` };
  return { confidence, text: reason ?? "No reason given." };
}

type Verdict = Pick<
  Attribution,
  "agent" | "step" | "parsePath" | "parseFailure" | "answers" | "confidence" | "ranking"
>;

function verdict(rounds: readonly Round[]): Verdict {
  const scored = rounds.flatMap((round) => (round.candidate === undefined ? [] : [round]));
  // Stable: of equal scores the later round, which knew the earlier one's critique, comes first.
  const [best, ...others] = scored.reverse().sort((a, b) => b.score - a.score);
  if (best === undefined) {
    const last = rounds.at(-1);
    const failure = last?.candidate === undefined ? last : undefined;
    const parseFailure = failure?.parseFailure ?? "no proposal was made";
    return { agent: failure?.agent ?? null, step: null, parsePath: "none", parseFailure };
  }
  const { agent, step, parsePath, answers } = best.candidate;
  return {
    agent,
    step,
    parsePath,
    ...(answers !== undefined && { answers }),
    confidence: best.score,
    ranking: [best, ...others].map(({ candidate, score }) => ({
      agent: candidate.agent,
      step: candidate.step,
      score,
    })),
  };
}
