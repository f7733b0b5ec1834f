import type { AgentCall } from "./recorded-run.ts";
import type { StepPolicy } from "./step-policy.ts";

/**
 * Consecutive calls of one agent up to its next hand-over are one step: an agent that calls tools, reads their results and
 * then answers acts once. Where agents run side by side, a turn also ends when another one is heard in between.
 */
export const perAgentTurn: StepPolicy = {
  id: "per-agent-turn",
  title: "consecutive model calls of one agent, up to its next hand-over, are a step",
  steps({ calls }) {
    const turns: { readonly agent: string; readonly calls: AgentCall[] }[] = [];
    for (const call of calls) {
      const turn = turns.at(-1);
      if (turn?.agent === call.agent) turn.calls.push(call);
      else turns.push({ agent: call.agent, calls: [call] });
    }
    return turns;
  },
};
