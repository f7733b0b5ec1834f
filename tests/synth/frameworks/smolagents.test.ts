import { smolagents } from "../../../synth/systems/smolagents/system.ts";
import { describeFramework } from "./framework.conformance.ts";

describeFramework({
  system: smolagents,
  lanes: { manager: 5, solver: 3, verifier: 1 },
  order: ["manager", "solver", "manager", "solver", "manager", "solver", "manager", "verifier", "manager"],
  withoutPreload: "exact",
});
