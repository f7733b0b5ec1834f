import { autogenRoundRobin } from "../../../synth/systems/autogen/system.ts";
import { describeFramework } from "./framework.conformance.ts";

describeFramework({
  system: autogenRoundRobin,
  lanes: { planner: 3, solver: 3, verifier: 3 },
  order: ["planner", "solver", "verifier", "planner", "solver", "verifier", "planner", "solver", "verifier"],
  withoutPreload: "exact",
});
