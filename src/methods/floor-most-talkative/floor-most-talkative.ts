import { z } from "zod";
import { stream } from "../../random.ts";
import { defineMethod, NO_CALLS } from "../method.ts";
import { computed, firstTurn } from "../shared/computed.ts";
import { mostTalkative } from "../shared/most-talkative.ts";

const ID = "floor-most-talkative";

/** The agent with the most turns, at its first; ties are settled by the seed. */
export const floorMostTalkative = defineMethod({
  id: ID,
  title: "Floor: the most talkative agent",
  needs: { model: false },
  optionsSchema: z.strictObject({
    exclude: z.array(z.string()).default([]).describe("agents left out, Computer_terminal say"),
  }),
  plan: () => NO_CALLS,
  attribute: async (view, options, { seed, epoch }) => {
    const candidates = mostTalkative(view, options.exclude);
    if (candidates.length === 0) return computed(null, null);
    const agent = stream(seed, ID, view.id, epoch).pick(candidates);
    return computed(agent, firstTurn(view, agent));
  },
});
