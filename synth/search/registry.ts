import { byId } from "../../src/registry.ts";
import { bayes } from "./bayes.ts";
import { exhaustive } from "./exhaustive.ts";
import { paper } from "./paper.ts";
import type { SearchStrategy } from "./strategy.ts";

/** Every search strategy; a new one is a file and a line here, and passes the conformance suite. */
export const searchStrategies: readonly SearchStrategy[] = [exhaustive, paper, bayes];

/** @throws RootstepError UNKNOWN_NAME listing the known ones */
export function searchStrategyById(id: string): SearchStrategy {
  return byId(searchStrategies, id, "search strategy", "search.strategies");
}
