import { z } from "zod";
import { defineMethod, NO_CALLS } from "../method.ts";
import { computed } from "../shared/computed.ts";

/** The last step and whoever acts there. */
export const floorLastStep = defineMethod({
  id: "floor-last-step",
  title: "Floor: the last step",
  needs: { model: false },
  optionsSchema: z.strictObject({}),
  plan: () => NO_CALLS,
  attribute: async (view) => {
    const last = view.steps.at(-1);
    return computed(last?.agent ?? null, last?.index ?? null);
  },
});
