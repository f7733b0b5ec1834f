import { camelWorkforce } from "../../../synth/systems/camel-workforce/system.ts";
import { describeFramework } from "./framework.conformance.ts";

describeFramework({
  system: camelWorkforce,
  // The planner splits the problem into four tasks and judges each; the coordinator names the workers by their ids.
  lanes: { planner: 5, coordinator: 1, solver: 3, verifier: 1 },
  order: [
    "planner",
    "coordinator",
    ...["solver", "planner"],
    ...["solver", "planner"],
    ...["solver", "planner"],
    ...["verifier", "planner"],
  ],
  withoutPreload: "masked",
});
