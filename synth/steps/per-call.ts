import type { StepPolicy } from "./step-policy.ts";

/** Every call of a model is one step of the agent that asked. */
export const perCall: StepPolicy = {
  id: "per-call",
  title: "every model call is a step",
  steps: ({ calls }) => calls.map((call) => ({ agent: call.agent, calls: [call] })),
};
