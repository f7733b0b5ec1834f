import { defaultSandbox } from "../../sandbox/remembered.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { pythonIn } from "../../tasks/code-answer.ts";
import type { AgentSystem } from "../system.ts";
import { createTeam, instructionsOf } from "../team.ts";
import { runAssertions } from "./run-assertions.ts";

const AGENTS = ["coder", "tester"] as const;
const ROUNDS = 2;
const instructions = instructionsOf("coder-tester", AGENTS);

/**
 * The coder writes a function, the tester asserts what it must give, the assertions run in the sandbox, the coder revises:
 * two rounds. Tool runs are no steps; they leave nothing behind, so a rerun may repeat them.
 */
export const coderTester: AgentSystem = coderTesterIn(defaultSandbox);

function coderTesterIn(sandbox: Sandbox): AgentSystem {
  return {
    id: "coder-tester",
    title: "coder and tester writing a Python function, with the tester's assertions run in a sandbox",
    agents: AGENTS,
    sideEffects: "none",
    stepPolicy: "per-call",
    async run(task, model, signal) {
      const team = createTeam(instructions, task, model, signal);
      let code = await team.turn("coder", "Write the function.");
      for (let round = 1; round <= ROUNDS; round++) {
        const assertions = await team.turn("tester", "Write assertions.");
        team.observe("sandbox", await runAssertions(code, assertions, sandbox, signal));
        code = await team.turn("coder", "Revise the function, or repeat it.");
      }
      return { answer: pythonIn(code) };
    },
    withSandbox: coderTesterIn,
  };
}
