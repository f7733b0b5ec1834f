import { readFileSync } from "node:fs";
import type { ChatModel } from "../../src/models/chat-model.ts";
import { shippedPath } from "../../src/package-root.ts";
import type { Task } from "../../src/trajectory/schema.ts";

/** The instructions of a system's agents: `AGENT.md` in the system's folder. */
export function instructionsOf<A extends string>(folder: string, agents: readonly A[]): ReadonlyMap<A, string> {
  return new Map(
    agents.map((agent) => [agent, readFileSync(shippedPath("synth", "systems", folder, `${agent}.md`), "utf8").trim()]),
  );
}

/** Agents that work through one task on a log which all of them see. */
export interface Team<A extends string> {
  /** Asks an agent and enters what it says into the log, without its reasoning. */
  turn(agent: A, demand: string): Promise<string>;
  /** Enters what the world answered to the last turn. */
  observe(label: string, text: string): void;
}

export function createTeam<A extends string>(
  instructions: ReadonlyMap<A, string>,
  task: Task,
  model: ChatModel,
  signal?: AbortSignal,
): Team<A> {
  const log: string[] = [];
  let turns = 0;
  return {
    async turn(agent, demand) {
      const shown = `Problem: ${task.text}\n\nLog:\n${log.join("\n")}\n\nTurn: ${agent}. ${demand}`;
      const response = await model.complete(
        {
          messages: [
            { role: "system", content: instructions.get(agent) ?? "" },
            { role: "user", content: shown },
          ],
        },
        { agent, ...(signal === undefined ? {} : { signal }) },
      );
      const said = response.content.replace(/<think>[\s\S]*?<\/think>/gu, "").trim();
      log.push(`${turns++} ${agent}: ${said}`);
      return said;
    },
    observe(label, text) {
      log.push(`> ${label}: ${text.replace(/\s*\n\s*/gu, " ")}`);
    },
  };
}
