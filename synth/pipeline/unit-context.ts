import type { ChatModel } from "../../src/models/chat-model.ts";
import { contentKey } from "../../src/models/content-key.ts";
import type { ModelConfig } from "../../src/models/resolve.ts";
import type { Task } from "../../src/trajectory/schema.ts";
import { defaultSandbox, remembered } from "../sandbox/remembered.ts";
import { inSandbox } from "../sandbox/sandbox.ts";
import { unconfined } from "../sandbox/unconfined.ts";
import { simulatedModelFor } from "../simulator/players/registry.ts";
import type { SimulatorConfig } from "../simulator/simulator.ts";
import { systemById } from "../systems/registry.ts";
import type { AgentSystem } from "../systems/system.ts";
import { taskSetById } from "../tasks/registry.ts";
import type { RefusedProblem, TaskSet } from "../tasks/task-set.ts";
import { refuseExternal } from "../tools/side-effects.ts";
import type { AgentModelConfig, SynthConfig } from "./config.ts";

/** All a unit's work may use besides its payload; the same on every host for the same configuration. */
export interface UnitContext {
  readonly config: SynthConfig;
  readonly system: AgentSystem;
  readonly taskSet: TaskSet;
  /** By task id, in the order in which they are worked on. */
  readonly tasks: ReadonlyMap<string, Task>;
  /** Problems left out because they cannot be checked here. */
  readonly refused: readonly RefusedProblem[];
  /** Plays the agents. Behind it stand budget, limiter and cache. */
  readonly model: ChatModel;
  readonly analyzer: ChatModel;
  /** Present where the model is the simulator: then its truth is written beside the labels. */
  readonly simulator: SimulatorConfig | undefined;
}

export interface ModelOpener {
  /** Opens a model server; the simulator is opened here. */
  readonly openModel: (config: ModelConfig) => ChatModel;
  /** Puts the caller's caps around the simulator, as `openModel` does around servers. */
  readonly withCaps?: ((model: ChatModel) => ChatModel) | undefined;
}

/**
 * @param given the tasks, where they have come from the coordinator: then no copy of the task set is read here
 * @throws RootstepError UNKNOWN_NAME, FILE_MISSING (a task set's files), DATA_NOT_SHIPPED, SANDBOX_UNAVAILABLE, KEY_MISSING, SIDE_EFFECTS
 */
export async function openUnitContext(
  config: SynthConfig,
  opener: ModelOpener,
  given?: readonly Task[],
): Promise<UnitContext> {
  const sandbox = config.unsafeNoSandbox ? remembered(unconfined) : defaultSandbox;
  const taskSet = inSandbox(taskSetById(config.tasks.set), sandbox);
  const system = inSandbox(systemById(config.system), sandbox);
  const { sideEffects } = system;
  refuseExternal({ sideEffects, isLive: true, hasTapedTools: false, allowExternal: config.allowExternal });
  if (given !== undefined && taskSet.withSandbox !== undefined) await sandbox.require();
  const { limit, path } = config.tasks;
  const refused: RefusedProblem[] = [];
  const onRefused = (problem: RefusedProblem): void => void refused.push(problem);
  const own = path === undefined ? {} : { path };
  const tasks = given ?? (await taskSet.load({ seed: config.seed, limit, ...own, onRefused }));
  const model = await open(config.model, system, tasks, opener);
  return {
    config,
    system,
    taskSet,
    tasks: new Map(tasks.map((task) => [task.id, task])),
    refused,
    model,
    analyzer: config.analyzer === undefined ? model : await open(config.analyzer, system, tasks, opener),
    simulator: config.model.provider === "simulator" ? config.model : undefined,
  };
}

/** Equal on two hosts that work on the same tasks. */
export function tasksKey({ tasks }: UnitContext): string {
  return contentKey([...tasks.values()]);
}

async function open(
  config: AgentModelConfig,
  system: AgentSystem,
  tasks: readonly Task[],
  { openModel, withCaps }: ModelOpener,
): Promise<ChatModel> {
  if (config.provider !== "simulator") return openModel(config);
  const simulator = (await simulatedModelFor(system.id, tasks))(config);
  return withCaps === undefined ? simulator : withCaps(simulator);
}
