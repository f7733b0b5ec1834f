import { describe, expect, it } from "vitest";
import { RootstepError } from "../../src/errors.ts";
import type { ChatModel } from "../../src/models/chat-model.ts";
import type { Kept } from "../../synth/ledger/kept.ts";
import { synthConfigSchema } from "../../synth/pipeline/config.ts";
import { recordingSchema } from "../../synth/pipeline/records.ts";
import { executableStages } from "../../synth/pipeline/stages.ts";
import { openUnitContext } from "../../synth/pipeline/unit-context.ts";
import { unitExecutor } from "../../synth/pipeline/unit-stage.ts";
import { bench } from "./setting.ts";

/** The seed is that of the simulator's tasks in `bench`. */
const SETTINGS = {
  seed: 5,
  system: "planner-solver-verifier",
  tasks: { set: "chain", limit: 1 },
  model: {
    provider: "openai-compatible",
    baseUrl: "http://127.0.0.1:1/v1",
    model: "paid",
    prices: { prompt: 1, completion: 2 },
  },
  inject: { operator: "wrong-number", points: 2, maxAdmissionReruns: 6, minControlSuccess: 0.3 },
  search: { maxBlocks: 4 },
};

/** Says what the simulator says, for money; cut off after so many calls. */
function paid(simulator: ChatModel, cutOffAfter: number) {
  let calls = 0;
  const model: ChatModel = {
    id: "paid",
    async complete(request, options) {
      if (calls === cutOffAfter) throw new RootstepError("INTERRUPTED", { what: "Ctrl-C" });
      calls++;
      return { ...(await simulator.complete(request, options)), usage: { promptTokens: 10, completionTokens: 3 } };
    },
  };
  return { model, calls: () => calls };
}

/** One unit, tried until it is done, each attempt cut off after so many calls and going on with what the others left. */
async function tried(stage: "record" | "inject", payload: unknown, cutOffAfter: number) {
  const { model: simulated } = await bench("chain", 1);
  const kept: Kept[] = [];
  let [attempts, calls] = [0, 0];
  for (;;) {
    const server = paid(simulated({ hardRate: 0, noise: 0.02 }), cutOffAfter);
    const context = await openUnitContext(synthConfigSchema.parse(SETTINGS), { openModel: () => server.model });
    const taskId = [...context.tasks.keys()][0] ?? "";
    const job = { id: "1", stage, key: "run", payload: payload ?? { id: "run", taskId }, kept: [...kept], fence: 1 };
    attempts++;
    try {
      const signal = new AbortController().signal;
      const done = await unitExecutor(context, executableStages)(job, { signal, onPart: (part) => kept.push(part) });
      return { ...done, attempts, calls: calls + server.calls() };
    } catch (error) {
      if (!(error instanceof RootstepError) || error.code !== "INTERRUPTED") throw error;
      calls += server.calls();
    }
  }
}

describe("a unit whose attempts are cut off", () => {
  it("pays for no answer of a recording or an injection twice, and ends with the same record and cost", async () => {
    const recording = await tried("record", undefined, Number.POSITIVE_INFINITY);
    expect(recording.calls).toBeGreaterThan(4);
    expect(recording.cost.calls).toBe(recording.calls);
    const inPieces = await tried("record", undefined, 2);
    expect(inPieces).toEqual({ ...recording, attempts: Math.floor(recording.calls / 2) + 1 });

    const payload = { recording: recordingSchema.parse(recording.record) };
    const injected = await tried("inject", payload, Number.POSITIVE_INFINITY);
    expect(injected.calls).toBeGreaterThan(recording.calls);
    expect(injected.cost.calls).toBe(injected.calls);
    const injectedInPieces = await tried("inject", payload, 5);
    expect(injectedInPieces).toEqual({ ...injected, attempts: Math.floor(injected.calls / 5) + 1 });
  });
});
