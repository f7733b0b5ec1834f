import { autogenSelector } from "../../../synth/systems/autogen/system.ts";
import { describeFramework } from "./framework.conformance.ts";

describeFramework({
  system: autogenSelector,
  lanes: { selector: 7, planner: 3, solver: 3, verifier: 1 },
  order: [
    "selector",
    "planner",
    "selector",
    "solver",
    "selector",
    "planner",
    "selector",
    "solver",
    "selector",
    "planner",
    "selector",
    "solver",
    "selector",
    "verifier",
  ],
  withoutPreload: "exact",
});
