import { setImmediate } from "node:timers/promises";
import type { ChatModel } from "../../src/models/chat-model.ts";
import { addCosts, type Cost, NO_COST } from "../ledger/cost.ts";
import type { AgentModelConfig } from "./config.ts";

/** Every so many calls the event loop gets its turn: a model that answers at once would keep signals, heartbeats and locks waiting. */
const CALLS_PER_TURN = 50;

export interface Meter {
  total(): Cost;
  add(cost: Cost): void;
}

export function createMeter(): Meter {
  let total = NO_COST;
  return {
    total: () => total,
    add(cost) {
      total = addCosts(total, cost);
    },
  };
}

/** Adds what each answered call cost to a meter: the answer's own usage, at the prices of the configuration. */
export function meteredModel(model: ChatModel, config: AgentModelConfig, meter: Meter): ChatModel {
  const prices = config.provider === "simulator" ? undefined : config.prices;
  return {
    id: model.id,
    async complete(request, options) {
      if (meter.total().calls % CALLS_PER_TURN === CALLS_PER_TURN - 1) await setImmediate();
      const response = await model.complete(request, options);
      const { promptTokens, completionTokens } = response.usage ?? { promptTokens: 0, completionTokens: 0 };
      // Prices are per million tokens: one token costs price × 1,000 billionths.
      const nanos =
        prices === undefined || response.usage === undefined
          ? null
          : Math.round(1000 * (promptTokens * prices.prompt + completionTokens * prices.completion));
      meter.add({ calls: 1, promptTokens, completionTokens, nanos });
      return response;
    },
  };
}
