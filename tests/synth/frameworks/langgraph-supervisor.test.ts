import { langgraphSupervisor } from "../../../synth/systems/langgraph/system.ts";
import { describeFramework } from "./framework.conformance.ts";

describeFramework({
  system: langgraphSupervisor,
  lanes: { supervisor: 8, planner: 3, solver: 3, verifier: 1 },
  order: [
    "supervisor",
    "planner",
    "supervisor",
    "solver",
    "supervisor",
    "planner",
    "supervisor",
    "solver",
    "supervisor",
    "planner",
    "supervisor",
    "solver",
    "supervisor",
    "verifier",
    "supervisor",
  ],
  withoutPreload: "masked",
});
