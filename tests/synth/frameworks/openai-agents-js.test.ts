import { describe, expect, it } from "vitest";
import type { Action } from "../../../synth/proxy/action.ts";
import { openaiAgentsJs as dialect } from "../../../synth/simulator/dialects/openai-agents-js.ts";
import { openaiAgentsJs } from "../../../synth/systems/openai-agents-js/system.ts";
import { CORRECTED } from "./correction.ts";
import { describeFramework } from "./framework.conformance.ts";

/** Another result in the recorded answer, which hands over as it did: the last event of the stream has it whole. */
function corrected(stream: string): Action {
  const last = [...stream.matchAll(/^data: ?(\{.*)$/gmu)].at(-1)?.[1] ?? "";
  const { type, response } = JSON.parse(last);
  if (type !== "response.completed") throw new Error(`the stream ends with ${type}`);
  const text = JSON.stringify(response).replace(/( = )-?\d+(?:\.\d+)?/gu, `$1${CORRECTED}`);
  return { kind: "answer", value: JSON.parse(text) };
}

describeFramework({
  system: openaiAgentsJs,
  lanes: { planner: 3, solver: 3, verifier: 1 },
  order: ["planner", "solver", "planner", "solver", "planner", "solver", "verifier"],
  withoutPreload: "exact",
  retries: [429, 500],
  correction: corrected,
});

describe("how the simulator plays the Agents SDK", () => {
  const SDK = "# System context\nYou are part of a multi-agent system called the Agents SDK, designed …\n\n";
  const role = (name: string) => `You are the ${name} of a team that solves a word problem one calculation at a time.`;
  const reply = (agent: string, lines: readonly string[], offered: readonly string[], line: string) => {
    const reading = dialect.read({
      messages: [
        { role: "system", content: `${SDK}${role(agent)}` },
        { role: "user", content: "Problem: How many?\n\nSolve it." },
        ...lines.map((content) => ({ role: "assistant" as const, content })),
      ],
      tools: offered.map((name) => ({ name: `transfer_to_${name}`, parameters: {} })),
    });
    if (reading?.kind !== "turn") throw new Error(`read as ${reading?.kind}`);
    return { final: reading.final, said: reading.dress(line) };
  };
  const to = (agent: string) => [{ name: `transfer_to_${agent}`, arguments: {} }];

  it("hands over with each line: to the solver, back to the planner, to the verifier at the end", () => {
    const offered = ["planner", "verifier"];
    expect(reply("planner", [], ["solver"], "Plan 1: 1 + 2").said).toEqual({
      content: "Plan 1: 1 + 2",
      toolCalls: to("solver"),
    });
    expect(reply("solver", ["Plan 1: 1 + 2"], offered, "1 + 2 = 3").said.toolCalls).toEqual(to("planner"));
    expect(reply("solver", ["Plan 1: 1 + 2 (last)"], offered, "1 + 2 = 3").said.toolCalls).toEqual(to("verifier"));
  });

  it("hands over to nobody where no one is offered, and then gives the final answer", () => {
    const line = "Checked: the final answer is 3.";
    const { final, said } = reply("verifier", ["Plan 1: 1 + 2 (last)", "1 + 2 = 3"], [], line);
    expect([final, said]).toEqual([true, { content: line }]);
  });

  it("claims no request without the SDK's own words", () => {
    const messages = [
      { role: "system" as const, content: role("planner") },
      { role: "user" as const, content: "Problem: How many?\n\nSolve it." },
    ];
    expect(dialect.read({ messages, tools: [{ name: "transfer_to_solver", parameters: {} }] })).toBeUndefined();
  });
});
