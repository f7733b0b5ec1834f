import { byId } from "../../src/registry.ts";
import { chain } from "./chain.ts";
import { gsm8k, gsm8kSmall } from "./gsm8k.ts";
import type { TaskSet } from "./task-set.ts";

/** Every task set; a new one is a file and a line here. */
export const taskSets: readonly TaskSet[] = [gsm8k, gsm8kSmall, chain];

/** @throws RootstepError UNKNOWN_NAME listing the known ones */
export function taskSetById(id: string): TaskSet {
  return byId(taskSets, id, "task set", "tasks.set");
}
