import { aflow } from "../../../synth/systems/aflow/system.ts";
import { describeFramework } from "./framework.conformance.ts";

/** With ROOTSTEP_AFLOW and ROOTSTEP_AFLOW_PYTHON set; the shape of its traffic is tested everywhere: aflow-traffic.test.ts. */
describeFramework({
  system: aflow,
  lanes: { planner: 3, solver: 3, verifier: 3, ensemble: 1 },
  order: [
    ...["planner", "solver"],
    ...["planner", "solver"],
    ...["planner", "solver"],
    ...["verifier", "verifier", "verifier"],
    "ensemble",
  ],
  withoutPreload: "exact",
});
