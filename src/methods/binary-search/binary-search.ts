import { z } from "zod";
import { stream } from "../../random.ts";
import { stripRemark } from "../../trajectory/agent-name.ts";
import { type Attribution, defineMethod, type ParsePath } from "../method.ts";
import { explained } from "../shared/answer-text.ts";
import { openDialogue } from "../shared/dialogue.ts";
import { type LogPrompt, logPrompt, type PromptSettings, promptCharacters, viewOfSteps } from "../shared/log-prompt.ts";
import { NO_STEPS } from "../shared/no-steps.ts";
import { parseHalf } from "../shared/parse-choice.ts";
import { firstSettings, logBudgetOption, structuredOption } from "../shared/prompt-options.ts";
import { promptTemplate } from "../shared/prompt-template.ts";
import { samplingOptions } from "../shared/sampling-options.ts";
import type { MethodView } from "../view.ts";

const ID = "binary-search";

const optionsSchema = z.strictObject({
  ...samplingOptions,
  logBudget: logBudgetOption,
  structured: structuredOption.default("never"),
});

const SCHEMA = {
  name: "half",
  schema: {
    type: "object",
    properties: { reason: { type: "string" }, half: { type: "string", enum: ["earlier", "later"] } },
    required: ["reason", "half"],
    additionalProperties: false,
  },
} as const;

/** Steps `from` to `last`, both included; the earlier half ends with step `middle`. */
interface Range {
  readonly from: number;
  readonly last: number;
}
const middleOf = ({ from, last }: Range): number => Math.floor((from + last) / 2);
const earlierHalf = (range: Range): Range => ({ from: range.from, last: middleOf(range) });
const laterHalf = (range: Range): Range => ({ from: middleOf(range) + 1, last: range.last });
const steps = ({ from, last }: Range): string => (from === last ? `step ${from}` : `steps ${from} to ${last}`);

/** The prompt about a stretch of the log; the rest of the log is not in it. */
function rangePrompt(view: MethodView, range: Range, settings: PromptSettings): LogPrompt {
  return logPrompt(promptTemplate(ID), viewOfSteps(view, range.from, range.last + 1), settings, {
    from: String(range.from),
    last: String(range.last),
    earlier: steps(earlierHalf(range)),
    later: steps(laterHalf(range)),
  });
}

/**
 * Halves the log ⌈log₂ T⌉ times (Zhang et al. 2025, "binary search"). An answer that names neither half or both is settled
 * by the seed, and that is recorded; where no answer at all could be read, the result is marked as a parse failure.
 */
export const binarySearch = defineMethod({
  id: ID,
  title: "Binary search: halves the log until one step is left",
  needs: { model: true },
  optionsSchema,
  plan: (view, options) => {
    const count = view.steps.length;
    // The earlier half is the larger one where they differ: it takes the most calls, the later half the fewest.
    const high = count < 2 ? 0 : Math.ceil(Math.log2(count));
    const low = count < 2 ? 0 : Math.floor(Math.log2(count));
    let characters = 0;
    for (let range = { from: 0, last: count - 1 }; range.from < range.last; range = earlierHalf(range)) {
      characters += promptCharacters(rangePrompt(view, range, firstSettings(options)));
    }
    return {
      calls: { low, expected: high, high },
      promptCharacters: characters,
      completionTokensLimit: high * options.maxTokens,
    };
  },
  attribute: async (view, options, context) => {
    const dialogue = openDialogue(ID, options, context);
    if (view.steps.length === 0) return NO_STEPS;
    let range: Range = { from: 0, last: view.steps.length - 1 };
    let parsePath: ParsePath = range.from === range.last ? "computed" : "none";
    let failure: string | undefined;
    while (range.from < range.last) {
      const asked = range;
      const response = await dialogue.ask({
        name: steps(asked),
        prompt: (settings) => rangePrompt(view, asked, settings),
        schema: SCHEMA,
      });
      const parsed = explained(parseHalf(response.content), response.finishReason);
      const choice =
        parsed.choice ??
        stream(context.seed, ID, view.id, context.epoch, asked.from, asked.last).pick(["earlier", "later"] as const);
      range = choice === "earlier" ? earlierHalf(asked) : laterHalf(asked);
      if (parsed.choice === null) {
        failure = parsed.parseFailure;
        dialogue.note({
          text: `${steps(asked)}: ambiguous (${failure ?? "no answer"}), settled by the seed: ${choice}`,
        });
      } else {
        parsePath = parsed.parsePath;
        dialogue.note({ text: `${steps(asked)}: ${choice}${parsed.reason === undefined ? "" : `. ${parsed.reason}`}` });
      }
    }
    const answer: Pick<Attribution, "agent" | "step"> = {
      agent: stripRemark(view.steps[range.from]?.agent ?? ""),
      step: range.from,
    };
    const unread = parsePath === "none" && {
      parseFailure: `every half was chosen by the seed: ${failure ?? "no answer"}`,
    };
    return { ...answer, parsePath, ...unread, ...dialogue.totals() };
  },
});
