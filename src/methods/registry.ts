import { byId } from "../registry.ts";
import { a2p } from "./a2p/a2p.ts";
import { allAtOnce } from "./all-at-once/all-at-once.ts";
import { binarySearch } from "./binary-search/binary-search.ts";
import { floorConstantAgent } from "./floor-constant-agent/floor-constant-agent.ts";
import { floorConstantStep } from "./floor-constant-step/floor-constant-step.ts";
import { floorLastStep } from "./floor-last-step/floor-last-step.ts";
import { floorMostTalkative } from "./floor-most-talkative/floor-most-talkative.ts";
import { floorRandom } from "./floor-random/floor-random.ts";
import { hybrid } from "./hybrid/hybrid.ts";
import type { AttributionMethod } from "./method.ts";
import { raffles } from "./raffles/raffles.ts";
import { stepByStep } from "./step-by-step/step-by-step.ts";
import { tracer } from "./tracer/tracer.ts";

/** Every attribution method: a folder each, and one line here. */
export const METHODS: readonly AttributionMethod[] = [
  allAtOnce,
  stepByStep,
  binarySearch,
  hybrid,
  a2p,
  raffles,
  tracer,
  floorConstantStep,
  floorConstantAgent,
  floorRandom,
  floorMostTalkative,
  floorLastStep,
];

/** @throws RootstepError UNKNOWN_NAME with the known ids */
export function methodById(id: string): AttributionMethod {
  return byId(METHODS, id, "attribution method", "setting method");
}
