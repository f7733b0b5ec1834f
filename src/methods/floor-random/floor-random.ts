import { z } from "zod";
import { stream } from "../../random.ts";
import { defineMethod, NO_CALLS } from "../method.ts";
import { computed } from "../shared/computed.ts";
import { agentsOf } from "../view.ts";

const ID = "floor-random";

/** A uniform step and, drawn apart from it, a uniform agent of the run. */
export const floorRandom = defineMethod({
  id: ID,
  title: "Floor: a random step and a random agent",
  needs: { model: false },
  optionsSchema: z.strictObject({}),
  plan: () => NO_CALLS,
  attribute: async (view, _options, { seed, epoch }) => {
    if (view.steps.length === 0) return computed(null, null);
    const random = stream(seed, ID, view.id, epoch);
    return computed(random.pick(agentsOf(view)), random.int(view.steps.length));
  },
});
