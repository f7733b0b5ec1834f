import { byId } from "../../src/registry.ts";
import { blackjack } from "./blackjack/blackjack.ts";
import { chain } from "./chain.ts";
import { gaia } from "./gaia/gaia.ts";
import { gsm8k, gsm8kSmall } from "./gsm8k.ts";
import { hotpotqa } from "./hotpotqa/hotpotqa.ts";
import { kodcode } from "./kodcode/kodcode.ts";
import { math, mathChains } from "./math/math.ts";
import { mbppPlus } from "./mbppplus/mbppplus.ts";
import type { TaskSet } from "./task-set.ts";

/** Every task set; a new one is a file and a line here. */
export const taskSets: readonly TaskSet[] = [
  gsm8k,
  gsm8kSmall,
  chain,
  mbppPlus,
  math,
  mathChains,
  hotpotqa,
  blackjack,
  kodcode,
  gaia,
];

/** @throws RootstepError UNKNOWN_NAME listing the known ones */
export function taskSetById(id: string): TaskSet {
  return byId(taskSets, id, "task set", "tasks.set");
}
