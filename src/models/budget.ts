import { RootstepError } from "../errors.ts";
import { untilInterrupted } from "../interruption.ts";
import type { Usage } from "../trajectory/schema.ts";
import type { ChatModel, ChatRequest } from "./chat-model.ts";

import { messagesJson } from "./message-json.ts";

/** Money per million tokens, in whatever currency the cap is given in. */
export interface Prices {
  readonly prompt: number;
  readonly completion: number;
}

export interface BudgetOptions {
  readonly maxCalls?: number | undefined;
  /** In the currency of the prices. */
  readonly maxCost?: number | undefined;
  /** For models that bring none of their own. */
  readonly prices?: Prices | undefined;
  /** Completion tokens assumed for a request without `maxTokens`; default 8192. */
  readonly assumedCompletionTokens?: number | undefined;
  /** What an earlier run of the same work has spent already. */
  readonly already?: { readonly calls: number; readonly cost: number } | undefined;
}

export interface Spent {
  /** Requests made, failed ones included. */
  readonly calls: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Undefined where no price is known. */
  readonly cost: number | undefined;
  /** Calls that may be billed but whose usage is not known: charged with the upper estimate, tokens not counted. */
  readonly unmeteredCalls: number;
}

/** A cap shared by every model that is wrapped with it. */
export interface Budget {
  readonly options: BudgetOptions;
  spent(): Spent;
  /**
   * Sets aside one call and an upper estimate of its cost, before it is made. A call that fits but for what others have
   * set aside waits until they settle.
   * @param cost upper estimate; undefined where no price is known
   * @throws RootstepError BUDGET_REACHED, INTERRUPTED
   */
  reserve(cost: number | undefined, signal?: AbortSignal): Promise<Reservation>;
}

export interface CallOutcome {
  readonly usage: Usage | undefined;
  /** What the usage costs; undefined where no price is known. */
  readonly cost: number | undefined;
}

export interface Reservation {
  /** Replaces the estimate by what the call took; without a usage the estimate stands. */
  settle(outcome: CallOutcome | "not billed"): void;
}

/** A budget with hard caps: what has been spent and set aside never exceeds them, however many calls run at once. */
export function createBudget(options: BudgetOptions): Budget {
  const { maxCalls = Number.POSITIVE_INFINITY, maxCost = Number.POSITIVE_INFINITY } = options;
  let calls = options.already?.calls ?? 0;
  let cost = options.already?.cost ?? 0;
  let reserved = 0;
  let open = 0;
  let promptTokens = 0;
  let completionTokens = 0;
  let unmeteredCalls = 0;
  let priced = options.prices !== undefined || options.already !== undefined;
  let waiting: (() => void)[] = [];

  const nextSettlement = (signal: AbortSignal | undefined): Promise<void> =>
    untilInterrupted(new Promise((resolve) => waiting.push(resolve)), signal);

  function charge(outcome: CallOutcome, estimate: number): void {
    if (outcome.usage === undefined) {
      cost += estimate;
      unmeteredCalls += 1;
    } else {
      cost += outcome.cost ?? 0;
      promptTokens += outcome.usage.promptTokens;
      completionTokens += outcome.usage.completionTokens;
    }
  }

  return {
    options,
    spent: () => ({ calls, promptTokens, completionTokens, cost: priced ? cost : undefined, unmeteredCalls }),
    async reserve(atMost, signal) {
      const estimate = atMost ?? 0;
      for (;;) {
        if (calls >= maxCalls) {
          throw new RootstepError("BUDGET_REACHED", { what: `All ${maxCalls} model calls of the budget are used` });
        }
        if (cost + reserved + estimate <= maxCost) break;
        if (open === 0 || cost + estimate > maxCost) {
          throw new RootstepError("BUDGET_REACHED", {
            what: `The next model call may cost ${money(estimate)}; ${money(cost)} of ${money(maxCost)} are spent`,
          });
        }
        await nextSettlement(signal);
      }
      if (atMost !== undefined) priced = true;
      calls += 1;
      reserved += estimate;
      open += 1;
      let settled = false;
      return {
        settle(outcome) {
          if (settled) return;
          settled = true;
          open -= 1;
          // Sums of many small reservations leave rounding dust; with nothing open there is nothing reserved.
          reserved = open === 0 ? 0 : reserved - estimate;
          if (outcome !== "not billed") charge(outcome, estimate);
          const woken = waiting;
          waiting = [];
          for (const wake of woken) wake();
        },
      };
    },
  };
}

const money = (amount: number): string => String(Number(amount.toPrecision(4)));

/**
 * Upper bound of the prompt's tokens. Byte-level vocabularies (BPE, SentencePiece with byte fallback) never make more
 * tokens than bytes; templates add a few per message and a preamble, more with tools.
 */
export function promptTokensAtMost(request: ChatRequest): number {
  const { messages, tools = [], responseFormat } = request;
  const bytes = Buffer.byteLength(JSON.stringify([tools, responseFormat ?? null]), "utf8");
  return messagesJson(messages).byteLength + bytes + 32 * messages.length + (tools.length > 0 ? 512 : 0) + 64;
}

/** Failures before the model began to write: no server bills them. */
const UNBILLED = new Set([
  "MODEL_UNREACHABLE",
  "MODEL_RATE_LIMITED",
  "MODEL_SERVER_ERROR",
  "MODEL_REFUSED_REQUEST",
  "MODEL_AUTH",
  "SCRIPT_EXHAUSTED",
]);

/**
 * Charges a model's calls to a budget. Wrap around it, from outside in: the cache (a hit costs nothing), retries
 * (each try counts) and the limiter (a call that waits has set nothing aside).
 * A failure in the middle of an answer is charged with its upper estimate, because the server may bill it.
 *
 * The cost cap holds exactly where requests set `maxTokens` and the server keeps to it; without it,
 * `assumedCompletionTokens` stand in, and a longer answer can pass the cap by itself, once.
 *
 * @param prices of this model, before the budget's
 * @throws RootstepError CONFIG_INVALID where the budget caps the cost and no price is known
 */
export function withBudget(
  model: ChatModel,
  budget: Budget,
  prices: Prices | undefined = budget.options.prices,
): ChatModel {
  if (budget.options.maxCost !== undefined && prices === undefined) {
    throw new RootstepError("CONFIG_INVALID", {
      what: `A cost cap is set, but no price is known for ${model.id}`,
      where: "prices",
      hint: "Set prices.prompt and prices.completion (per million tokens; 0 for a server of your own), or cap the calls instead.",
    });
  }
  const costOf = (usage: Usage): number | undefined =>
    prices && (usage.promptTokens * prices.prompt + usage.completionTokens * prices.completion) / 1e6;
  const costAtMost = (request: ChatRequest): number | undefined => {
    if (prices === undefined) return undefined;
    const completionTokens = request.maxTokens ?? budget.options.assumedCompletionTokens ?? 8192;
    return costOf({ promptTokens: promptTokensAtMost(request), completionTokens });
  };
  return {
    id: model.id,
    async complete(request, options) {
      const reservation = await budget.reserve(costAtMost(request), options?.signal);
      try {
        const response = await model.complete(request, options);
        reservation.settle({ cost: response.usage && costOf(response.usage), usage: response.usage });
        return response;
      } catch (error) {
        const unbilled = error instanceof RootstepError && UNBILLED.has(error.code);
        reservation.settle(unbilled ? "not billed" : { usage: undefined, cost: undefined });
        throw error;
      }
    },
  };
}
