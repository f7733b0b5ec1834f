import { z } from "zod";
import { defineMethod, NO_CALLS } from "../method.ts";
import { computed } from "../shared/computed.ts";

/** Always the same step, and whoever acts there; no agent where the log is shorter. */
export const floorConstantStep = defineMethod({
  id: "floor-constant-step",
  title: "Floor: always the same step",
  needs: { model: false },
  optionsSchema: z.strictObject({
    step: z.number().int().nonnegative().default(1).describe("the step to blame, 0-based"),
  }),
  plan: () => NO_CALLS,
  attribute: async (view, options) => computed(view.steps[options.step]?.agent ?? null, options.step),
});
