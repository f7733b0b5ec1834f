import { metagpt } from "../../../synth/systems/metagpt/system.ts";
import { describeFramework } from "./framework.conformance.ts";

/** Nearly 1 GB: `scripts/frameworks/metagpt.sh` installs it and runs this. */
describeFramework({
  system: metagpt,
  lanes: { planner: 3, solver: 3, verifier: 1 },
  order: ["planner", "solver", "planner", "solver", "planner", "solver", "verifier"],
  withoutPreload: "exact",
});
