import { crewai } from "../../../synth/systems/crewai/system.ts";
import { describeFramework } from "./framework.conformance.ts";

describeFramework({
  system: crewai,
  // checker and auditor run side by side: no order of all calls.
  lanes: { planner: 1, solver: 4, checker: 1, auditor: 1, verifier: 1 },
  withoutPreload: "exact",
});
