import type { ChatModel } from "../../src/models/chat-model.ts";
import type { Task } from "../../src/trajectory/schema.ts";
import type { RunsCode } from "../sandbox/sandbox.ts";

/** A multi-agent system that can be run again: in process here, by command through the proxy later. */
export interface AgentSystem extends RunsCode<AgentSystem> {
  readonly id: string;
  readonly title: string;
  readonly agents: readonly string[];
  /** What a rerun touches outside its own process. `external` is refused for reruns. */
  readonly sideEffects: "none" | "workdir" | "taped" | "external";
  /** How its calls become steps. */
  readonly stepPolicy: "per-call";
  /**
   * Solves one task by asking `model`, naming the agent in each call's options.
   * @returns its answer, undefined if it found none
   */
  run(task: Task, model: ChatModel, signal?: AbortSignal): Promise<{ readonly answer: string | undefined }>;
}
