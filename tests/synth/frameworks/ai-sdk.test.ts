import { describe, expect, it } from "vitest";
import type { ChatMessage } from "../../../src/models/chat-model.ts";
import { aiSdk as dialect } from "../../../synth/simulator/dialects/ai-sdk.ts";
import { aiSdk } from "../../../synth/systems/ai-sdk/system.ts";
import { describeFramework } from "./framework.conformance.ts";

describeFramework({
  system: aiSdk,
  // Three tool calls and the end; verifier and auditor ask at the same time.
  lanes: { planner: 4, solver: 3, verifier: 1, auditor: 1 },
  withoutPreload: "exact",
  retries: [429, 500],
});

describe("how the simulator plays the AI SDK's team", () => {
  const role = (name: string): ChatMessage => ({
    role: "system",
    content: `You are the ${name} of a team that solves a word problem one calculation at a time.`,
  });
  const problem: ChatMessage = { role: "user", content: "Problem: How many?\n\nSolve it." };
  const tools = [{ name: "solve", parameters: {} }];
  const call = (plan: string): ChatMessage => ({
    role: "assistant",
    content: "",
    toolCalls: [{ id: "c", name: "solve", arguments: JSON.stringify({ plan }) }],
  });
  const result = (content: string): ChatMessage => ({ role: "tool", content, toolCallId: "c" });

  it("reads the work from tool calls and results, and plans by calling the tool", () => {
    const reading = dialect.read({
      messages: [role("planner"), problem, call("Plan 1: 1 + 2"), result("1 + 2 = 3")],
      tools,
    });
    if (reading?.kind !== "turn") throw new Error(`read as ${reading?.kind}`);
    expect(reading.log).toEqual([
      { agent: "planner", content: "Plan 1: 1 + 2" },
      { agent: "solver", content: "1 + 2 = 3" },
    ]);
    expect(reading.dress("Plan 2: previous * 2 (last)")).toEqual({
      content: "",
      toolCalls: [{ name: "solve", arguments: { plan: "Plan 2: previous * 2 (last)" } }],
    });
  });

  it("calls no tool once the last calculation is carried out", () => {
    const messages = [role("planner"), problem, call("Plan 1: 1 + 2 (last)"), result("1 + 2 = 3")];
    expect(dialect.read({ messages, tools })).toEqual({ kind: "direct", reply: { content: "The work is done." } });
  });

  it("checks as JSON, and leaves plain text to the team's dialect", () => {
    const verifier = role("verifier");
    const asJson = { ...verifier, content: `${verifier.content} Give your line as JSON: {"statement": "…"}.` };
    const reading = dialect.read({ messages: [asJson, problem] });
    if (reading?.kind !== "turn") throw new Error(`read as ${reading?.kind}`);
    expect(reading.dress("Checked: the final answer is 3.").content).toBe(
      '{"statement":"Checked: the final answer is 3."}',
    );
    for (const request of [{ messages: [verifier, problem] }, { messages: [role("planner"), problem] }]) {
      expect(dialect.read(request)).toBeUndefined();
    }
  });
});
