import { langgraph } from "../../../synth/systems/langgraph/system.ts";
import { describeFramework } from "./framework.conformance.ts";

describeFramework({
  system: langgraph,
  lanes: { planner: 3, solver: 3, verifier: 1 },
  order: ["planner", "solver", "planner", "solver", "planner", "solver", "verifier"],
  withoutPreload: "exact",
});
