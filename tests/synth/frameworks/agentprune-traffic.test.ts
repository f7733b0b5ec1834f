import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { identityFaults } from "../../../synth/proxy/identity.ts";
import { knowledgeOf } from "../../../synth/simulator/knowledge.ts";
import { serveSimulator } from "../../../synth/simulator/server.ts";
import { simulatedModel, simulatorConfigSchema } from "../../../synth/simulator/simulator.ts";
import { agentprune } from "../../../synth/systems/agentprune/system.ts";
import { foldRetries } from "../../../synth/tape/fold.ts";
import { gsm8k } from "../../../synth/tasks/gsm8k.ts";
import { type Handler, startServer } from "../../models/loopback.ts";
import { completion } from "../proxy-setting.ts";
import { mostAtOnce, type RecordedTraffic, traffic } from "./traffic.ts";

const { idPatterns } = agentprune;
const { record, folder, clean } = traffic();
const open: { close(): Promise<void> }[] = [];
afterAll(async () => {
  for (const server of open) await server.close();
  clean();
});

const stub = async (handler: Handler): Promise<string> => {
  const server = await startServer(handler);
  open.push(server);
  return `${server.url}/v1`;
};

describe("traffic like AgentPrune's: a batch of four questions, agents named by random characters", () => {
  let tasks: Awaited<ReturnType<typeof gsm8k.load>>;
  let simulator: string;
  let batch: RecordedTraffic;
  beforeAll(async () => {
    tasks = await gsm8k.load({ seed: 1, limit: 4 });
    const config = simulatorConfigSchema.parse({ provider: "simulator", hardRate: 0, noise: 0 });
    const served = await serveSimulator({
      model: simulatedModel({ config, solve: knowledgeOf(tasks) }),
      port: 0,
      now: () => new Date(0),
    });
    open.push(served);
    simulator = served.url;
    batch = await record("agentprune.mjs", [JSON.stringify(tasks.map(({ text }) => text)), "2"], simulator);
  });

  it("is recorded with a lane for each system prompt, several calls under way, and solved", async () => {
    const { report, tape } = batch;
    expect(report).toMatchObject({ exitCode: 0, calls: 4 * (2 * 4 + 1), retried: 0, failed: 0 });
    expect(Object.values(report.lanes).sort((a, b) => a - b)).toEqual([4, 8, 8, 8, 8]);
    expect(mostAtOnce(tape)).toBeGreaterThan(1);
    const answers = report.answer?.split(" ") ?? [];
    const outcomes = await Promise.all(tasks.map((task, index) => gsm8k.check(task, answers[index])));
    expect(outcomes.map(({ success }) => success)).toEqual([true, true, true, true]);
  });

  it("passes the identity gate with the system's id patterns: no call is live", async () => {
    const replay = await batch.again({ idPatterns });
    expect(identityFaults(replay)).toEqual([]);
    expect(replay).toMatchObject({ liveCalls: 0, unplayed: 0, answer: batch.report.answer });
    expect(replay.levels.L1).toBeGreaterThanOrEqual(4 * 7);
  });

  it("diverges without them, naming the ids, and nothing is live", async () => {
    // Of one question: beside others the difference named may be that of two questions, as they arrive.
    const { again } = await record("agentprune.mjs", [JSON.stringify([tasks[0]?.text])], simulator);
    const replay = await again();
    expect(replay.stopped?.code).toBe("REPLAY_DIVERGED");
    expect(replay.stopped?.what).toMatch(/recorded: .*Agent \w{4} as a[\s\S]*asked: .*Agent \w{4} as a/u);
    expect(replay.liveCalls).toBe(0);
    expect((await batch.again()).stopped?.code).toBe("REPLAY_DIVERGED");
  });

  it("goes on live after a corrected answer, and later prompts quote it", async () => {
    const { bodies } = batch.tape;
    const { calls } = foldRetries(batch.tape.calls); // as a cut counts them; the file has them as they ended
    const at = calls.findIndex(({ response }) => bodies.get(response.body).toString().includes(" = "));
    const again = { idPatterns, upstream: new URL(simulator), out: folder() };
    const action = { kind: "text", text: "1 + 1 = 77771\nThe answer is 77771" } as const;
    const replay = await batch.again({ ...again, cut: { at, action } });
    expect(replay).toMatchObject({ actions: 1, unplayed: 0, stopped: undefined, exitCode: 0 });
    expect(replay.liveCalls).toBe(batch.report.calls - at - 1);
    expect(replay.answer?.split(" ").filter((answer) => answer === "77771")).toHaveLength(1);
  });

  it("answers that name an agent name this run's agent", async () => {
    const url = await stub(({ body }, response) => {
      const user: string = JSON.parse(body).messages[1].content;
      const id = /^Agent (\w{4}) as a/mu.exec(user)?.[1];
      response.end(completion(id === undefined ? "The answer is 5" : `Agent ${id} is right.\nThe answer is 5`));
    });
    const { again, report, tape } = await record("agentprune.mjs", [JSON.stringify(["2 + 3?"])], url);
    expect(report).toMatchObject({ exitCode: 0, answer: "5", calls: 5 });
    expect(
      tape.calls.some(({ response }) => /Agent \w{4} is right/u.test(tape.bodies.get(response.body).toString())),
    ).toBe(true);
    const replay = await again({ idPatterns });
    expect(identityFaults(replay)).toEqual([]);
    expect(replay).toMatchObject({ liveCalls: 0, levels: { L0: 1, L1: 4, L2: 0 } });
  });

  it("counts two layers of retries as one call: the library's, marked, and the program's, which begin at 0 again", async () => {
    let asked = 0;
    const url = await stub((_, response) => {
      asked++;
      if (asked > 1 && asked <= 5) response.statusCode = 500;
      response.end(asked > 1 && asked <= 5 ? "{}" : completion("The answer is 5"));
    });
    const { again, report } = await record("agentprune.mjs", [JSON.stringify(["2 + 3?"])], url);
    expect(report).toMatchObject({ exitCode: 0, answer: "5", calls: 5, retried: 4, failed: 0 });
    expect(identityFaults(await again({ idPatterns }))).toEqual([]);
  });
});
