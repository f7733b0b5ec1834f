import { RootstepError } from "../../src/errors.ts";
import { exhaustive } from "./exhaustive.ts";
import { paper } from "./paper.ts";
import type { SearchStrategy } from "./strategy.ts";

/** Every search strategy; a new one is a file and a line here, and passes the conformance suite. */
export const searchStrategies: readonly SearchStrategy[] = [exhaustive, paper];

/** @throws RootstepError UNKNOWN_NAME listing the known ones */
export function searchStrategyById(id: string): SearchStrategy {
  const found = searchStrategies.find((strategy) => strategy.id === id);
  if (found !== undefined) return found;
  throw new RootstepError("UNKNOWN_NAME", {
    what: `there is no search strategy "${id}"; known: ${searchStrategies.map((strategy) => strategy.id).join(", ")}`,
    where: "search.strategies",
  });
}
