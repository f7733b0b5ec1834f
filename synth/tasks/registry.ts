import { RootstepError } from "../../src/errors.ts";
import { chain } from "./chain.ts";
import { gsm8k, gsm8kSmall } from "./gsm8k.ts";
import type { TaskSet } from "./task-set.ts";

/** Every task set; a new one is a file and a line here. */
export const taskSets: readonly TaskSet[] = [gsm8k, gsm8kSmall, chain];

/** @throws RootstepError UNKNOWN_NAME listing the known ones */
export function taskSetById(id: string): TaskSet {
  const found = taskSets.find((set) => set.id === id);
  if (found !== undefined) return found;
  throw new RootstepError("UNKNOWN_NAME", {
    what: `there is no task set "${id}"; known: ${taskSets.map((set) => set.id).join(", ")}`,
    where: "tasks.set",
  });
}
