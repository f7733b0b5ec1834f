import { z } from "zod";
import { defineMethod, NO_CALLS } from "../method.ts";
import { computed, firstTurn } from "../shared/computed.ts";

/** Always the same agent, at its first turn; no step where it does not act. */
export const floorConstantAgent = defineMethod({
  id: "floor-constant-agent",
  title: "Floor: always the same agent",
  needs: { model: false },
  optionsSchema: z.strictObject({
    agent: z.string().min(1).default("WebSurfer").describe("the agent to blame"),
  }),
  plan: () => NO_CALLS,
  attribute: async (view, options) => computed(options.agent, firstTurn(view, options.agent)),
});
