import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import { type Budget, withBudget } from "../../src/models/budget.ts";
import type { ChatModel } from "../../src/models/chat-model.ts";
import { contentKey } from "../../src/models/content-key.ts";
import type { ModelConfig } from "../../src/models/resolve.ts";
import { type ModelOpener, openUnitContext, type UnitContext } from "../pipeline/unit-context.ts";
import type { WorkerInfo } from "../queue/queue.ts";
import type { RunRegistration } from "../queue/run-registration.ts";
import { sharedBudget } from "../queue/shared-budget.ts";

export interface WorkerModels {
  readonly info: WorkerInfo;
  /** Opens a model server behind a budget. */
  readonly openModel: (config: ModelConfig, budget: Budget) => ChatModel;
  /** Stands around the simulator; a benchmark gives it a latency here. */
  readonly aroundSimulator?: ((model: ChatModel) => ChatModel) | undefined;
}

/**
 * What a worker needs for the units of a run: its models stand behind caps and limits that all workers share.
 *
 * @param onServer hears the id of each model server with shared limits
 */
export function openRunContext(
  { config, given }: Pick<RunRegistration, "config" | "given">,
  redis: Redis,
  budget: string,
  { info, openModel, aroundSimulator }: WorkerModels,
  onServer: (id: string) => void,
): Promise<UnitContext> {
  const caps = { maxCalls: config.maxCalls, maxCost: config.maxCost };
  const shared = { budget, caps, worker: info.id, newId: randomUUID };
  const opener: ModelOpener = {
    openModel(model) {
      const id = serverId(model);
      onServer(id);
      const { concurrency, requestsPerMinute } = model;
      return openModel(model, sharedBudget(redis, { ...shared, server: { id, concurrency, requestsPerMinute } }));
    },
    withCaps(simulator) {
      const model = aroundSimulator?.(simulator) ?? simulator;
      return config.maxCalls === undefined ? model : withBudget(model, sharedBudget(redis, shared));
    },
  };
  return openUnitContext(config, opener, given);
}

/** Two configurations of one model on one server share its limits, whatever else differs. */
function serverId(config: ModelConfig): string {
  const at = config.provider === "hugging-face" ? [config.endpointUrl, config.inferenceProvider] : [config.baseUrl];
  return contentKey([config.provider, ...at, config.model]).slice(0, 16);
}
